// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How an rdma_cm_id behaves by iWARP's rules and by InfiniBand's. The wire protocol is the same,
// and each end may follow either set of rules: doc/decisions/023.
#pragma once

#include <cstdint>

#include "cm/cm.h"
#include "device/face.h"

namespace uiw::cm {

// What moves the queue pair of a connection to RTS.
enum class Mover : uint8_t {
  // Connection set-up: the active end gets ESTABLISHED when the Reply arrives, and sends its RTR
  // frame at once.
  kConnection,
  // The program, or librdmacm for it, by ibv_modify_qp: the Reply raises CONNECT_RESPONSE. The
  // queue pair gets the stream when the program says that it is ready; MPA's RTR frame tells that
  // to the passive end. TIMEWAIT_EXIT follows the end of the connection.
  kProgram,
};

// The events for one service, and the limits of its private data.
struct ServiceRules {
  // Room for private data, in bytes.
  uint8_t connect_room, accept_room, reject_room;
  // The events for an attempt that was refused, for one without a route to the host, and for one
  // that failed for another reason.
  EventType refused, no_way, failed;
  // The status of `refused`: the peer's program has rejected; nobody listens; the peer has closed
  // without a Reply.
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

// Fills in what InfiniBand's CM messages say of a peer and MPA's frames do not, as far as it can be
// stated truthfully.
void complete_offer(const Rules& rules, ConnParam& offer);

// The default exponent of the time-out (verbs/ack_time.h) that RoCE's rdma_cm uses without
// RDMA_OPTION_ID_ACK_TIMEOUT: a packet's lifetime is 2^16 there, and the time-out is twice that.
inline constexpr uint8_t kPacketLifetime = 16, kUsualAckTimeout = kPacketLifetime + 1;

}  // namespace uiw::cm
