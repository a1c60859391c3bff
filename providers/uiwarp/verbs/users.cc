// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/users.h"

#include <cerrno>
#include <cstdio>
#include <iterator>

#include "core/settings.h"

namespace uiw::verbs {
namespace {

constexpr const char* kNames[] = {
    "queue pair",    "shared receive queue", "completion queue", "memory region",
    "memory window", "address handle",       "parent domain",    "multicast group",
};
static_assert(std::size(kNames) == static_cast<size_t>(User::kGroup) + 1);

}  // namespace

uint32_t Users::total() const {
  uint32_t sum = 0;
  for (const auto& count : counts_) sum += count.load(std::memory_order_acquire);
  return sum;
}

int refuse_busy(core::Told& told, const char* call, const Users& users) {
  if (core::settings().checked()) return EBUSY;  // the finding of --check names them
  char list[256] = "";                           // enough for all kinds, each with ten digits
  size_t used = 0;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const uint32_t count = users.count_of(static_cast<User>(i));
    if (count == 0 || used >= sizeof list) continue;
    const int size = std::snprintf(list + used, sizeof list - used, "%s%u %s%s", used ? ", " : "",
                                   count, kNames[i], count == 1 ? "" : "s");
    if (size > 0) used += static_cast<size_t>(size);
  }
  return core::refuse(told, EBUSY,
                      "%s: in use by %s: destroy or detach these first; the call failed with "
                      "EBUSY, and the object is still there",
                      call, list);
}

}  // namespace uiw::verbs
