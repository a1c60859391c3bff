// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/place_shaken.h"

#include <iterator>

#include "core/cpu_relax.h"
#include "core/tuning.h"

namespace uiw::qp {
namespace {

template <int kTurns>
void place_with_pause(uint8_t* to, core::Bytes payload) {
  place_end_first(to, payload, [] {
    for (int i = 0; i < kTurns; ++i) core::cpu_relax();
  });
}

}  // namespace

Place place_by(uint64_t drawn) {
  constexpr Place kPlaces[] = {place, place_with_pause<core::tuning::kShortPlacingPause>,
                               place_with_pause<core::tuning::kLongPlacingPause>,
                               place_with_pause<core::tuning::kLongPlacingPause>};
  return kPlaces[drawn % std::size(kPlaces)];
}

}  // namespace uiw::qp
