// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connection attempts that found no listener and wait for one (cm/initiator.cc). Of the attempts to
// one address only the first tries again. When it is connected, the others follow in the order of
// their rdma_connect() calls: programs number their connections at both ends by the order of the
// Requests (perftest's -q). Without this, a listener that appears between two attempts would
// reverse that order.
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
  // Does nothing for one that has not joined.
  void leave(Initiator& attempt);
  // Whether an attempt to this address waits.
  bool any_to(const sockaddr_storage& destination) const {
    return first_to(destination) != nullptr;
  }
  // Whether an attempt to the same address waits that began before `attempt`.
  bool any_before(const Initiator& attempt) const;
  // Removes and returns the next attempt to this address, or null.
  Initiator* take(const sockaddr_storage& destination);

 private:
  using Attempts = core::List<Initiator, &Initiator::among_refused>;
  Initiator* first_to(const sockaddr_storage& destination) const;

  Attempts attempts_;
};

}  // namespace uiw::cm
