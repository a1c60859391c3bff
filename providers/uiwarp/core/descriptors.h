// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which descriptors of the process have to do with uiwarp. The preload library looks here first in
// each of its calls, so that all others cost nothing.
//
// A daemon closes every number that it does not know, and opens files that get these numbers. What
// the stack has made for itself (sockets, eventfds, timers, its ends of pipes) the program cannot
// mean: with the kernel's RDMA there would be no such descriptor. So the hooks leave these open,
// and nothing of ours is ever sent to, or read from, somebody else's file.
#pragma once

#include <cstdint>

namespace uiw::core {

enum class DescriptorUse : uint8_t {
  kForeign,  // the program's own, or not open
  kDevice,   // a virtual device that the program has opened
  kOwn,      // made by the stack for itself
};

// Higher ones are all foreign.
inline constexpr int kDescriptors = 65536;

// All of these: any thread, async-signal-safe, no system call.
void set_descriptor_use(int fd, DescriptorUse use);
DescriptorUse descriptor_use(int fd);
// One byte for each, a DescriptorUse.
const unsigned char* descriptor_uses();
// In the child of a fork: there the stack's are nobody's.
void forget_own_descriptors();

// What core/raw_sys.h opens is the stack's own until it is closed there. Of others: a library has
// made it for the stack, or will close it now; or the program gets it.
inline void adopt_descriptor(int fd) {
  set_descriptor_use(fd, DescriptorUse::kOwn);
}
inline void release_descriptor(int fd) {
  set_descriptor_use(fd, DescriptorUse::kForeign);
}

}  // namespace uiw::core
