// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Has memory changed? Of long memory pieces are looked at that are spread over it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uiw::check {

// Goes on with `value`. False: some of it is not mapped. Memory that another thread unmaps
// meanwhile is a fault. Thread: any.
bool fingerprint(const void* memory, size_t size, uint32_t& value);

}  // namespace uiw::check
