// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/clock.h"

#include <time.h>

namespace uiw::core {

Nanoseconds now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

}  // namespace uiw::core
