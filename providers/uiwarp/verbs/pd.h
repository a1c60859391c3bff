// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A protection domain: a number that memory and queue pairs must share. A parent domain is another
// object of the same number.
#pragma once

#include <cstdint>

#include "verbs/context.h"
#include "verbs/users.h"

// Its objects are those that one thread uses at a time. They lock as all others do: "by default all
// verbs objects are safe for multi-threaded access, whether or not a thread domain is specified"
// (ibv_alloc_td).
struct uiwarp_td {
  uiwarp_context* context = nullptr;
  uiw::verbs::Users users;  // parent domains
  uiw::core::Told told;
};

struct uiwarp_pd {
  uiwarp_context* context = nullptr;
  uint32_t id = 0;  // never reused within 2^32 allocations
  uiw::verbs::Users users;
  uiwarp_pd* parent_of = nullptr;  // of a parent domain: what it was made of, and
  uiwarp_td* td = nullptr;         // with, if anything
  uiw::core::Told told;
};
