// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A protection domain: a number that memory and queue pairs must share. A parent domain is another
// object with the same number; so is an imported domain in another context.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "verbs/context.h"
#include "verbs/users.h"

// A thread domain: one thread at a time uses its objects. They lock like all others: "by default
// all verbs objects are safe for multi-threaded access, whether or not a thread domain is
// specified" (ibv_alloc_td).
struct uiwarp_td {
  uiwarp_context* context = nullptr;
  uiw::verbs::Users users;  // parent domains
  uiw::core::Told told;
};

struct uiwarp_pd {
  uiwarp_context* context = nullptr;
  std::shared_ptr<uiw::verbs::Domain> domain;
  uint32_t id = 0;  // the domain's, not reused within 2^32 allocations
  // The number of its objects, plus kUnimported. Both are in one word, so that the last object to
  // go can tell that it must free the domain.
  std::atomic<uint32_t> held{0};
  uiw::verbs::Users users;         // its objects by kind, for messages
  uiwarp_pd* parent_of = nullptr;  // a parent domain: the domain and, perhaps,
  uiwarp_td* td = nullptr;         // the thread domain it was made of
  uiw::core::Told told;
};

namespace uiw::verbs {

// Flag in `held`: ibv_unimport_pd was called; the domain is freed with its last object.
inline constexpr uint32_t kUnimported = 1u << 31;

// Whether objects can be made in it: 0; ENODEV in a forked child; EINVAL, with a message, when
// another context has destroyed it. Thread: any.
int check_usable(const uiwarp_pd& pd);

// Adds or removes an object of it. After the latter it may have been freed. Thread: any.
void hold(uiwarp_pd& pd, User kind);
void let_go(uiwarp_pd& pd, User kind);

}  // namespace uiw::verbs
