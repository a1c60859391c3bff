// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "qp/send_queue.h"
#include "queue/receive_queue.h"

namespace uiw::test {

// One work request, as ibv_post_send() posts it.
inline int post(qp::SendQueue& queue, const ibv_send_wr& wr, bool signal_all = false) {
  queue.begin();
  const int error = queue.add(wr, signal_all);
  queue.end(true);
  return error;
}

// One receive, as ibv_post_recv() posts it.
inline int post(queue::ReceiveQueue& queue, ibv_recv_wr& wr) {
  ibv_recv_wr* list = &wr;
  return queue.post(list);
}

}  // namespace uiw::test
