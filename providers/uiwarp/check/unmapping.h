// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory that is unmapped while it is registered, as libuiwarp-preload.so tells of calls that do
// so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "check/regions.h"
#include "check/request.h"

namespace uiw::check {

// `size` bytes at `address` are taken away by `call`: reports what is registered there. Thread: the
// one that makes the call, whatever locks it holds that are not this library's.
void unmapping(const void* address, size_t size, const char* call);

// The region is registered, and named by `owner` in the list of objects, until it is left. A
// region for paging on demand follows what is mapped, and is not looked at. Thread: any.
void watch_memory(const Region& region, const void* owner);
void leave_memory(const Region& region);

// The registered region in which an SGE of the request has memory of [begin, end); null: none.
// Pure.
const Region* region_within(const Request& request, const Regions& regions, uint64_t begin,
                            uint64_t end);

}  // namespace uiw::check
