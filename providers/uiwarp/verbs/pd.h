// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A protection domain: a number that memory and queue pairs must share.
#pragma once

#include <atomic>
#include <cstdint>

#include "verbs/context.h"

struct uiwarp_pd {
  uiwarp_context* context = nullptr;
  uint32_t id = 0;                 // never reused within 2^32 allocations
  std::atomic<uint32_t> users{0};  // memory regions and windows, SRQs, queue pairs
};
