// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a thread of the program waits inside of a verb.
#pragma once

#include <ctime>

#include "core/clock.h"
#include "core/no_cancellation.h"

namespace uiw::core {

// Returns at `due` of now() or later; at once when that has been. No cancellation point. With no
// lock held. Thread: any.
inline void sleep_until(Nanoseconds due) {
  const NoCancellation guard;
  for (Nanoseconds left; (left = due - now()) > 0;) {
    const timespec time{left / kSecond, left % kSecond};
    nanosleep(&time, nullptr);
  }
}

}  // namespace uiw::core
