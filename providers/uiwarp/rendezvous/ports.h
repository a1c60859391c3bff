// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The TCP ports that the queue pair numbers of this process contain. A port is bound, so that no
// other process has the same numbers, but does not listen: a program that uses rdma_cm opens
// nothing. It listens once the first of its queue pairs expects its peer (qpn_listener.h), at the
// addresses that are the GIDs of such queue pairs.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "engine/engine.h"

namespace uiw::rendezvous {

class QpnListener;
struct Name;

// A further requirement of a caller on a port.
class PortCondition {
 public:
  // 0, or an errno if the port does not meet it. Called once for each port considered; the last one
  // is the number's. A lock is held that take_number() and give_number() take.
  virtual int try_port(uint16_t port) = 0;

 protected:
  ~PortCondition() = default;
};

// A number that no other queue pair of this host has, or has had lately (except under --shake). It
// cannot be predicted. EADDRINUSE: no port of the allowed range (UIWARP_PORTS) is free, or the
// condition rejects those that are; EMFILE and the like. Thread: any.
core::Result<uint32_t> take_number(PortCondition* condition = nullptr);
// Gives a number back. If it was the last one of a port that listens, or if another port is idle,
// the port is closed. Thread: any that may wait for the engine.
void give_number(uint32_t qp_num);
// Closes the ports without a number in use. Thread: any.
void close_idle_ports();

// Whether take_number() has handed out this number. Thread: any.
bool number_in_use(uint32_t qp_num);

// Returns the listener of a queue pair's port, which listens at the queue pair's GID from now on.
// `ifindex`: of a link-local GID. It stays until the number is given back. Errno: EADDRNOTAVAIL no
// such address, EMFILE, ENOMEM, EINVAL no such number. Thread: engine.
core::Result<QpnListener*> open_listener(engine::Engine& engine, const Name& own, unsigned ifindex);

}  // namespace uiw::rendezvous
