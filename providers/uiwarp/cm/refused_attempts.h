// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Attempts to connect that found nobody listening, and wait for a listener (cm/initiator.cc). Of
// those to one address only the first tries again. When it is connected the others follow, in the
// order of their rdma_connect(): programs number their connections at either end by the order in
// which Requests come (perftest's -q), and a listener that comes between two of them would turn
// that order round.
//
// Thread: any, the manager's lock held.
#pragma once

#include <sys/socket.h>

#include "cm/initiator.h"
#include "core/list.h"

namespace uiw::cm {

class RefusedAttempts {
 public:
  void join(Initiator& attempt);
  // Also of one that has not joined.
  void leave(Initiator& attempt);
  // Whether one to this address waits.
  bool any_to(const sockaddr_storage& destination) const {
    return first_to(destination) != nullptr;
  }
  // Whether one to the same address waits that began before `attempt`.
  bool any_before(const Initiator& attempt) const;
  // The next one to this address, which leaves; null: there is none.
  Initiator* take(const sockaddr_storage& destination);

 private:
  using Attempts = core::List<Initiator, &Initiator::among_refused>;
  Initiator* first_to(const sockaddr_storage& destination) const;

  Attempts attempts_;
};

}  // namespace uiw::cm
