// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A protection domain: a number that memory and queue pairs must share. A parent domain is another
// object of the same number, and so is an imported one, in another context.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

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
  std::shared_ptr<uiw::verbs::Domain> domain;
  uint32_t id = 0;  // the domain's: never reused within 2^32 allocations
  // Its objects of all kinds, and kUnimported: one number, as the last object takes it away.
  std::atomic<uint32_t> held{0};
  uiw::verbs::Users users;         // the same by kind, for messages
  uiwarp_pd* parent_of = nullptr;  // of a parent domain: what it was made of, and
  uiwarp_td* td = nullptr;         // with, if anything
  uiw::core::Told told;
};

namespace uiw::verbs {

// In `held`: ibv_unimport_pd has come. The last object takes it away.
inline constexpr uint32_t kUnimported = 1u << 31;

// Whether objects can be made in it: 0; ENODEV, in a forked child; EINVAL, which has been said,
// when another context has destroyed it. Thread: any.
int check_usable(const uiwarp_pd& pd);

// An object of it more, or less. After the latter it may be gone. Thread: any.
void hold(uiwarp_pd& pd, User kind);
void let_go(uiwarp_pd& pd, User kind);

}  // namespace uiw::verbs
