// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which of the process's engines serves a queue pair. All queue pairs that complete into one CQ
// have the same engine, so that a thread that polls the CQ can receive for them (progress/lease.h).
#pragma once

#include "core/result.h"
#include "verbs/cq.h"

namespace uiw::verbs {

// Over how many engines queue pairs are spread: settings().engines, or as many as suit the
// processors that this process may use. Fixed at the first call. Thread: any.
uint32_t engine_count();

// The engine of a queue pair: that of its receive CQ; if that has none yet, that of its send CQ;
// else the one that the completion vector names or, for vector 0, the one with the lowest load. It
// becomes the affinity of CQs that had none. Errno: as Engine::start(). Thread: any but an
// engine's.
core::Result<engine::Engine*> affinity_of(uiwarp_cq& receives, uiwarp_cq& sends);

// Makes the first engine of the process, which serves all UD queue pairs, the affinity of CQs that
// have none. Thread: any but an engine's.
void set_first_affinity(uiwarp_cq& receives, uiwarp_cq& sends);

// For a CQ that is being destroyed.
void drop_affinity(uiwarp_cq& cq);

}  // namespace uiw::verbs
