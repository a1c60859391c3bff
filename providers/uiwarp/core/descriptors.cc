// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/descriptors.h"

#include <atomic>

namespace uiw::core {
namespace {

constinit std::atomic<DescriptorUse> g_uses[kDescriptors] = {};
static_assert(sizeof g_uses == kDescriptors);

bool is_in_range(int fd) {
  return fd >= 0 && fd < kDescriptors;
}

}  // namespace

void set_descriptor_use(int fd, DescriptorUse use) {
  if (is_in_range(fd)) g_uses[fd].store(use, std::memory_order_relaxed);
}

DescriptorUse descriptor_use(int fd) {
  return is_in_range(fd) ? g_uses[fd].load(std::memory_order_relaxed) : DescriptorUse::kForeign;
}

const unsigned char* descriptor_uses() {
  return reinterpret_cast<const unsigned char*>(g_uses);
}

void forget_own_descriptors() {
  for (int fd = 0; fd < kDescriptors; ++fd) {
    if (descriptor_use(fd) == DescriptorUse::kOwn) release_descriptor(fd);
  }
}

}  // namespace uiw::core
