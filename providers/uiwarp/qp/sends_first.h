// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the receive machine asks before a message takes its receive, so that programs see the
// completion of a request before that of the message that answers it (doc/protocol.md, "Order that
// programs can rely on").
#pragma once

namespace uiw::qp {

class SendsFirst {
 public:
  // Whether the completions of all requests that TCP had taken before the bytes came can be seen,
  // as far as posting order allows. `answered`: and of those that were answered since the last
  // call. False: another thread is about to complete some. Never waits. Thread: the receive
  // machine's, which holds no region and no completion back meanwhile.
  virtual bool sends_first(bool answered) = 0;

 protected:
  ~SendsFirst() = default;
};

}  // namespace uiw::qp
