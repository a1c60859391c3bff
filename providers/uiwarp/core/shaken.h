// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Effects of --shake that the stack itself must produce, as the instrument (shake/) only stands
// between the provider and the stack.
#pragma once

#include <cstdint>
#include <optional>

#include "core/chance.h"
#include "core/settings.h"
#include "core/shake_options.h"

namespace uiw::core {

// Purposes for drawing from the seed; different from those in shake/temper.cc.
enum class Shaken : uint64_t {
  kPlacing = 100,  // qp/place_shaken.h
  kKeys,           // mem/table.h
  kNumbers,        // rendezvous/ports.h
  kEvents,         // cm/lateness.h
};

constexpr Liberty liberty_of(Shaken what) {
  switch (what) {
    case Shaken::kPlacing:
      return Liberty::kPlacing;
    case Shaken::kKeys:
      return Liberty::kKeys;
    case Shaken::kNumbers:
      return Liberty::kNumbers;
    case Shaken::kEvents:
      return Liberty::kEvents;
  }
  return Liberty::kPlacing;
}

// 64 random bits for the `nth` occasion, from 0, of that object. None: without --shake, or if it
// leaves that liberty out. Thread: any.
inline std::optional<uint64_t> shaken(Shaken what, uint64_t object = 0, uint64_t nth = 0) {
  ShakeOptions options;
  if (!parse_shake_options(settings().shake, options) || !options.takes(liberty_of(what)))
    return std::nullopt;
  return chance(options.seed, {static_cast<uint64_t>(what), object, nth});
}

}  // namespace uiw::core
