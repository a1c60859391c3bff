// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The TCP ports of this process that its queue pair numbers contain. A port is bound, so that no
// other process has the same numbers, but does not listen: a program that uses rdma_cm opens
// nothing. It listens from when the first of its queue pairs expects its peer (qpn_listener.h), at
// the addresses that are the GIDs of such queue pairs.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "engine/engine.h"

namespace uiw::rendezvous {

class QpnListener;
struct Name;

// What else somebody needs of a port.
class PortCondition {
 public:
  // 0, or the errno for which it does not do. Once for each port that is considered, the last one
  // being the number's; with a lock held that take_number() and give_number() take.
  virtual int try_port(uint16_t port) = 0;

 protected:
  ~PortCondition() = default;
};

// A number that no other queue pair of this host has, and none had lately (but under --shake);
// which one of those nobody can foresee. EADDRINUSE: no port of the allowed range (UIWARP_PORTS) is
// free, or the condition allows none of some that are; EMFILE and the like. Thread: any.
core::Result<uint32_t> take_number(PortCondition* condition = nullptr);
// With the last number of a port that listens, or when another one is idle, the port is closed.
// Thread: any that may wait for the engine.
void give_number(uint32_t qp_num);
// Closes the ports of which no number is in use. Thread: any.
void close_idle_ports();

// Whether take_number() gave this number. Thread: any.
bool number_in_use(uint32_t qp_num);

// The listener of a queue pair's port; listens at the queue pair's GID from now on. `ifindex`: of a
// link-local GID. It stays until the number is given back. Errno: EADDRNOTAVAIL
// no such address, EMFILE, ENOMEM, EINVAL no such number. Thread: engine.
core::Result<QpnListener*> open_listener(engine::Engine& engine, const Name& own, unsigned ifindex);

}  // namespace uiw::rendezvous
