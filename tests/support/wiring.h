// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells one end of a connection which memory and which queues are its own.
#pragma once

#include "mem/table.h"
#include "qp/shared.h"

namespace uiw::test {

inline void wire(qp::Shared& shared, uint32_t qp_num, uint32_t pd, mem::Table& memory,
                 qp::SendQueue& sends, queue::ReceiveQueue& receives,
                 queue::CompletionQueue& send_cq, queue::CompletionQueue& recv_cq) {
  shared.qp_num = qp_num;
  shared.pd = shared.receive_pd = pd;
  shared.memory = &memory;
  shared.send_queue = &sends;
  shared.receive_queue = &receives;
  shared.send_cq = &send_cq;
  shared.recv_cq = &recv_cq;
}

}  // namespace uiw::test
