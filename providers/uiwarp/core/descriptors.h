// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which descriptors of the process concern uiwarp. Each hook of the preload library looks here
// first, so that calls on other descriptors cost nothing.
//
// A daemon closes every descriptor number that it does not know, and then opens files that get
// these numbers. It cannot mean the descriptors that the stack has made for itself (sockets,
// eventfds, timers, its ends of pipes): with the kernel's RDMA these would not exist. So the hooks
// leave them open, and the stack never sends to, or reads from, a file of the program.
#pragma once

#include <cstdint>

namespace uiw::core {

enum class DescriptorUse : uint8_t {
  kForeign,  // the program's own, or not open
  kDevice,   // a virtual device that the program has opened
  kOwn,      // made by the stack for itself
};

// Higher numbers are all foreign.
inline constexpr int kDescriptors = 65536;

// All of these: any thread, async-signal-safe, no system call.
void set_descriptor_use(int fd, DescriptorUse use);
DescriptorUse descriptor_use(int fd);
// One byte per descriptor, a DescriptorUse.
const unsigned char* descriptor_uses();
// In a forked child: the stack's descriptors become foreign.
void forget_own_descriptors();

// A descriptor that core/raw_sys.h opens is the stack's own until it is closed there. For others:
// adopt one that a library has made for the stack; release one that a library will close, or that
// the program gets.
inline void adopt_descriptor(int fd) {
  set_descriptor_use(fd, DescriptorUse::kOwn);
}
inline void release_descriptor(int fd) {
  set_descriptor_use(fd, DescriptorUse::kForeign);
}

}  // namespace uiw::core
