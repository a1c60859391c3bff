// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a thread of the program waits inside a verb.
#pragma once

#include <ctime>

#include "core/clock.h"
#include "core/no_cancellation.h"

namespace uiw::core {

// Returns when now() has reached `due`; at once if it has. No cancellation point. Call it without a
// lock. Thread: any.
inline void sleep_until(Nanoseconds due) {
  const NoCancellation guard;
  for (Nanoseconds left; (left = due - now()) > 0;) {
    const timespec time{left / kSecond, left % kSecond};
    nanosleep(&time, nullptr);
  }
}

}  // namespace uiw::core
