// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

namespace uiw::vkernel {

// How many descriptors the table of a process that uses RDMA has room for from the beginning, or as
// many as it may have: each connection takes one or two.
inline constexpr int kDescriptorRoom = 8192;

// Has the kernel make the process's table of descriptors that large now. `fd`: any that is open.
//
// In a process with threads the kernel waits whenever the table has to grow (for RCU readers,
// fs/file.c): 10 to 15 ms each time it doubles, measured on a virtual machine. That would be the
// engine in accept(), with all connections behind it, or rdma_connect(). A program that opens a
// device mostly has no thread yet, and then nobody waits. The room costs 64 KiB of the kernel's
// memory. Where that fails the table grows as it always does.
//
// Once in each process. Three system calls. Thread: any.
void make_descriptor_room(int fd);

}  // namespace uiw::vkernel
