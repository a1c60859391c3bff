// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What an rdma_cm_id does by iWARP's rules and by InfiniBand's. The wire is the same, and either
// end may follow the ones or the others: doc/decisions/023.
#pragma once

#include <cstdint>

#include "cm/cm.h"
#include "device/face.h"

namespace uiw::cm {

// Who takes the queue pair of a connection to RTS.
enum class Mover : uint8_t {
  // The connection itself: the active end is ESTABLISHED with the Reply, and its RTR frame goes out
  // at once.
  kConnection,
  // The program, or librdmacm for it, by ibv_modify_qp: the Reply is a CONNECT_RESPONSE, and the
  // stream is the queue pair's when the program says that it is ready, which MPA's RTR frame tells
  // the passive end. A connection that has ended is followed by TIMEWAIT_EXIT.
  kProgram,
};

// What ends of one service are told, and how much they may say.
struct ServiceRules {
  // Bytes of private data that there is room for.
  uint8_t connect_room, accept_room, reject_room;
  // The event of an attempt that was refused, of one for which there is no way to the host, and of
  // one that failed for another reason.
  EventType refused, no_way, failed;
  // The status of `refused`: by the peer's program; nobody listens; the peer went without a word.
  int rejected, nobody_listens, closed;
};

struct Rules {
  Mover mover;
  ServiceRules connection;
  const ServiceRules* datagrams;  // null: there are none

  const ServiceRules& of(Service service) const {
    return service == Service::kDatagrams && datagrams != nullptr ? *datagrams : connection;
  }
};

const Rules& rules_of(device::CmRules which);

// What InfiniBand's CM messages say of a peer, and MPA's frames do not, as far as something true
// can be said.
void complete_offer(const Rules& rules, ConnParam& offer);

// The exponent of a time-out (verbs/ack_time.h) that RoCE's rdma_cm uses unless
// RDMA_OPTION_ID_ACK_TIMEOUT says another: the lifetime of a packet is 2^16 there, and a time-out
// is twice that.
inline constexpr uint8_t kPacketLifetime = 16, kUsualAckTimeout = kPacketLifetime + 1;

}  // namespace uiw::cm
