// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The queue pair numbers of this process, by which rdma_cm finds the QP for a connection.
#pragma once

#include <cstdint>

#include "rendezvous/ports.h"
#include "session/queue_pair.h"

namespace uiw::verbs {

// The QP with that number, or null. Thread: engine. ibv_destroy_qp unregisters there, so a QP stays
// valid for the rest of the engine turn. Other threads may only test for null.
session::QueuePair* find_queue_pair(uint32_t qp_num);

// Calls session::QueuePair::claim() of the QP with that number. EINVAL also when there is none.
// Thread: any.
int claim_queue_pair(uint32_t qp_num);

// Calls `call` for each published queue pair of this process; none is destroyed meanwhile. False:
// nothing was done, as another thread uses the registry. `call` must not wait for an engine.
// Thread: any, and signal handlers.
bool for_each_queue_pair(void (*call)(session::QueuePair& queue_pair, void* with), void* with);

// A number and, after publish(), the queue pair that has it. Owned by verbs/qp.cc.
struct Registration {
  uint32_t qp_num = 0;
  session::QueuePair* queue_pair = nullptr;  // under the registry's mutex
  Registration* next = nullptr;
};

// Gives `registration` a unique number of 24 bits, by which peers can connect (rendezvous/ports.h).
// If no TCP port is available, the number can only be used by rdma_cm; its upper 16 bits are then
// below all ports that are used. False when out of memory. Thread: any.
bool reserve_number(Registration& registration);
// The same with a condition (rendezvous/ports.h), for a queue pair that needs a port. 0, ENOMEM, or
// take_number()'s errno.
int reserve_number(Registration& registration, rendezvous::PortCondition& condition);
// From now on find_queue_pair() finds it; null: no more. Call it in the process that reserved the
// number. Thread: any; for null the engine.
void publish(Registration& registration, session::QueuePair* queue_pair);
// Returns the number of a queue pair that is not published; idempotent. Thread: any that may wait
// for the engine.
void unregister(Registration& registration);

}  // namespace uiw::verbs
