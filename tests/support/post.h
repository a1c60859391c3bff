// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "qp/send_queue.h"

namespace uiw::test {

// One work request, as ibv_post_send() posts it.
inline int post(qp::SendQueue& queue, const ibv_send_wr& wr, bool signal_all = false) {
  queue.begin();
  const int error = queue.add(wr, signal_all);
  queue.end(true);
  return error;
}

}  // namespace uiw::test
