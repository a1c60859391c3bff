// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory that a program names in a command. What it names wrongly is an error of the command, as
// with the kernel's copy_from_user() and copy_to_user(), and not the end of the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uiw::vkernel {

// Copies `size` bytes of the program's memory. 0, or EFAULT: not all of it can be read. Two system
// calls, but none for what lies close above on the calling thread's stack, where librdmacm and
// libibverbs have their commands: a pointer there is no wild one. Thread: any.
int copy_in(void* to, const void* from, size_t size);
// The same to the program's memory. EFAULT: not all of it can be written to.
int copy_out(void* to, const void* from, size_t size);

// Addresses as they stand in commands.
inline void* user_pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

}  // namespace uiw::vkernel
