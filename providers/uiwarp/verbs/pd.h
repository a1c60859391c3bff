// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A protection domain: a number that memory and queue pairs must share. A parent domain is another
// object of the same number.
#pragma once

#include <atomic>
#include <cstdint>

#include "verbs/context.h"

// Its objects are those that one thread uses at a time. They lock as all others do: "by default all
// verbs objects are safe for multi-threaded access, whether or not a thread domain is specified"
// (ibv_alloc_td).
struct uiwarp_td {
  uiwarp_context* context = nullptr;
  std::atomic<uint32_t> users{0};  // parent domains
};

struct uiwarp_pd {
  uiwarp_context* context = nullptr;
  uint32_t id = 0;  // never reused within 2^32 allocations
  // Memory regions and windows, address handles, SRQs, queue pairs, parent domains; of a parent
  // domain completion queues, too.
  std::atomic<uint32_t> users{0};
  uiwarp_pd* parent_of = nullptr;  // of a parent domain: what it was made of, and
  uiwarp_td* td = nullptr;         // with, if anything
};
