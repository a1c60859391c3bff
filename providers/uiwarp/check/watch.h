// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A thread that looks twice a second for threads of the program which wait for what will not come.
// It begins with the first thing to look at.
#pragma once

#include <cstdint>

#include "check/objects.h"

namespace uiw::check::watch {

// Completion queues that have a channel, from their creation to just before their end. Thread: any.
void add(Cq& cq);
void remove(Cq& cq);

// Of ids of rdma_cm; see uiwarp_cm_*() of uiwarp-abi.h. `here`: the program's call. Thread: the
// program's, whose call that is.
void event_taken(uint64_t uid, const Stack& here);
void id_destroyed(uint64_t uid, uint32_t events, const Stack& here);

}  // namespace uiw::check::watch
