// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which of the process's engines serves a queue pair. All that complete into one queue have the
// same one, so that a thread that polls it can receive for them (progress/lease.h).
#pragma once

#include "core/result.h"
#include "verbs/cq.h"

namespace uiw::verbs {

// How many engines queue pairs are spread over: settings().engines, or as many as fit the
// processors that this process may use. Fixed from the first call on. Thread: any.
uint32_t engine_count();

// The engine of a queue pair: that of the completion queue that it receives by; if this has none
// yet, that of the other one; else the one that the completion vector names, or, for vector 0, the
// one with the lowest load. It is the affinity of queues that had none from now on. Errno: as
// Engine::start(). Thread: any but an engine's.
core::Result<engine::Engine*> affinity_of(uiwarp_cq& receives, uiwarp_cq& sends);

// The first engine of the process, which serves all UD queue pairs, becomes the affinity of queues
// that have none. Thread: any but an engine's.
void set_first_affinity(uiwarp_cq& receives, uiwarp_cq& sends);

// The queue is being destroyed.
void drop_affinity(uiwarp_cq& cq);

}  // namespace uiw::verbs
