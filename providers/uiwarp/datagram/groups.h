// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The multicast groups that UD queue pairs of this process are attached to. Each has a socket of
// its own at the groups' port; every process of the host that has one gets what comes.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "datagram/queue_pair.h"
#include "engine/engine.h"

namespace uiw::datagram {

// At an interface; and queue pairs of one group.
inline constexpr uint32_t kMostGroups = 256, kMostAttached = 64;

// ibv_attach_mcast: from here on `qp` gets a copy of each datagram to the group (group.h) that
// comes by the interface, but its own. 0 also when it is attached already; `added`: it was not.
// ENOMEM: one of the limits above; EMFILE and the like; ENODEV: the interface has gone. `engine`:
// the first one. Thread: any.
int attach(engine::Engine& engine, QueuePair& qp, const in6_addr& group, unsigned ifindex,
           bool& added);
// ibv_detach_mcast: not from when this has returned. EINVAL: it is not attached. Thread: any that
// may wait for the engine.
int detach(QueuePair& qp, const in6_addr& group, unsigned ifindex);

}  // namespace uiw::datagram
