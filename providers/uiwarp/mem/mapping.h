// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Checks whether a range of this process's memory is mapped with the access wanted.
#pragma once

#include <cstdint>

namespace uiw::mem {

// 0, or EFAULT when some byte of [address, address+length) is not mapped readable (and writable
// when `writable`). Asks the kernel (PROCMAP_QUERY, or /proc/thread-self/maps before Linux 6.11);
// where /proc cannot be read the answer is 0. Touches no page. Thread: any.
int check_mapped(const void* address, uint64_t length, bool writable);

// The same for length > 0, always by /proc/thread-self/maps. Exposed so that tests reach it on any
// kernel.
int check_mapped_by_text(const void* address, uint64_t length, bool writable);

}  // namespace uiw::mem
