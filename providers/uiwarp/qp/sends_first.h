// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The receive machine asks this before a message takes its receive, so that programs see the
// completion of a request before the completion of the message that answers it (doc/protocol.md,
// "Order that programs can rely on").
#pragma once

namespace uiw::qp {

class SendsFirst {
 public:
  // True: the completions of all requests that TCP had taken before these bytes came are visible,
  // as far as posting order allows. `answered`: so must be those of requests that were answered
  // since the last call. False: another thread is about to complete some. Never waits. Thread: the
  // receive machine's, which holds no region and no unpushed completion during the call.
  virtual bool sends_first(bool answered) = 0;

 protected:
  ~SendsFirst() = default;
};

}  // namespace uiw::qp
