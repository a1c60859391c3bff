// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells one end of a connection which memory and which queues are its own.
#pragma once

#include <memory>

#include "mem/table.h"
#include "qp/shared.h"

namespace uiw::test {

using SourceKind = queue::CompletionSource::Kind;

// What it is to its completion queues: lives as long as those.
struct Sources {
  Sources(qp::SendQueue& sends, queue::ReceiveQueue& receives, SourceKind of_receives)
      : send(SourceKind::kOwnQueue, sends.freed()), recv(of_receives, receives.freed()) {}
  queue::CompletionSource send, recv;
};

[[nodiscard]] inline std::unique_ptr<Sources> wire(qp::Shared& shared, uint32_t qp_num, uint32_t pd,
                                                   mem::Table& memory, qp::SendQueue& sends,
                                                   queue::ReceiveQueue& receives,
                                                   queue::CompletionQueue& send_cq,
                                                   queue::CompletionQueue& recv_cq,
                                                   SourceKind of_receives = SourceKind::kOwnQueue) {
  shared.qp_num = qp_num;
  shared.pd = shared.receive_pd = pd;
  shared.memory = &memory;
  shared.send_queue = &sends;
  shared.receive_queue = &receives;
  shared.send_cq = &send_cq;
  shared.recv_cq = &recv_cq;
  auto sources = std::make_unique<Sources>(sends, receives, of_receives);
  shared.send_source = &sources->send;
  shared.recv_source = &sources->recv;
  return sources;
}

}  // namespace uiw::test
