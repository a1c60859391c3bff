// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pair numbers of this process: how rdma_cm finds the QP that a connection is for.
#pragma once

#include <cstdint>

#include "rendezvous/ports.h"
#include "session/queue_pair.h"

namespace uiw::verbs {

// The QP of that number; null when there is none. Thread: engine, where ibv_destroy_qp unregisters,
// so that a QP found there stays for the rest of that engine turn. Others can ask whether there is
// one.
session::QueuePair* find_queue_pair(uint32_t qp_num);

// session::QueuePair::claim() of the QP of that number. EINVAL also when there is none. Thread:
// any.
int claim_queue_pair(uint32_t qp_num);

// Calls it for each queue pair of this process that is published; none is destroyed meanwhile.
// False: not now, as somebody is at work here. `call` must not wait for an engine. Thread: any, and
// signal handlers.
bool for_each_queue_pair(void (*call)(session::QueuePair& queue_pair, void* with), void* with);

// A number and, once publish() was called, the queue pair that has it. Owned by verbs/qp.cc.
struct Registration {
  uint32_t qp_num = 0;
  session::QueuePair* queue_pair = nullptr;  // under the registry's mutex
  Registration* next = nullptr;
};

// Gives `registration` a number that no other has: 24 bits, one that peers can meet
// (rendezvous/ports.h) or, where no TCP port is to be had, one that only rdma_cm can connect: its
// upper 16 bits are below every port that may be had. False when out of memory. Thread: any.
bool reserve_number(Registration& registration);
// The same with a condition (rendezvous/ports.h), for a queue pair that is of no use without a
// port. 0, ENOMEM, or take_number()'s errno.
int reserve_number(Registration& registration, rendezvous::PortCondition& condition);
// From now on find_queue_pair() finds it. In the process that reserved its number. Thread: any.
void publish(Registration& registration, session::QueuePair* queue_pair);
// Gives the number back; idempotent. Thread: engine once it was published, else any that may wait
// for it.
void unregister(Registration& registration);

}  // namespace uiw::verbs
