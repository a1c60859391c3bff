// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the stack itself does by the seed of --shake, because the instrument (shake/) cannot: it
// stands on the line between the provider and the stack.
#pragma once

#include <cstdint>
#include <optional>

#include "core/chance.h"
#include "core/settings.h"

namespace uiw::core {

// Numbers that nothing else of the seed is drawn by (shake/temper.cc).
enum class Shaken : uint64_t {
  kPlacing = 100,  // qp/place_shaken.h
  kKeys,           // mem/table.h
  kNumbers,        // rendezvous/ports.h
  kEvents,         // cm/lateness.h
};

// 64 bits for the `nth` time, from 0, of that object. None: without --shake. Thread: any.
inline std::optional<uint64_t> shaken(Shaken what, uint64_t object = 0, uint64_t nth = 0) {
  const std::optional<uint64_t> seed = seed_of(settings().shake);
  if (!seed) return std::nullopt;
  return chance(*seed, {static_cast<uint64_t>(what), object, nth});
}

}  // namespace uiw::core
