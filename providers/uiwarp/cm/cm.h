// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// RDMA connection management over plain TCP sockets. It does what the kernel's rdma_cm + iw_cm do
// for a hardware RNIC or, by InfiniBand's rules (rules.h), what rdma_cm + ib_cm do for a RoCE
// adapter. It knows nothing of the ucma command format (vkernel/ucma does). This file has the types
// of its interface (manager.h).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

#include "core/retry_count.h"
#include "device/device.h"

namespace uiw::cm {

enum class EventType : uint32_t {  // values of rdma_cm_event_type
  kAddrResolved = 0,
  kAddrError = 1,
  kRouteResolved = 2,
  kRouteError = 3,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kConnectError = 6,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
  kDeviceRemoval = 11,
  kMulticastJoin = 12,
  kMulticastError = 13,
  kTimewaitExit = 15,
  kUser = 18,      // made by the application itself (write_event), rdma-core 60 and later
  kInternal = 19,  // made by librdmacm itself
};

enum class PortSpace : uint16_t {  // values of rdma_ucm_port_space
  kIpoib = 0x0002,
  kTcp = 0x0106,
  kUdp = 0x0111,
  kIb = 0x013f,
};

// What connect() and listen() of an id refer to.
enum class Service : uint8_t {
  kConnection,  // of a reliable queue pair
  kDatagrams,   // finding the queue pair to send datagrams to: service id resolution (resolution.h)
  kNone,        // not supported by the rules, or by software
};

// The Q_Key of queue pairs that rdma_cm makes for datagrams: RDMA_UDP_QKEY.
inline constexpr uint32_t kDatagramQkey = 0x01234567;

struct ConnParam {
  uint8_t private_data[256] = {};
  uint8_t private_data_len = 0;
  uint8_t responder_resources = 0;  // IRD: Reads that the peer may have outstanding to us
  uint8_t initiator_depth = 0;      // ORD: Reads that we may have outstanding
  uint32_t qp_num = 0;
  uint32_t qkey = 0;  // for datagrams
  // InfiniBand parameters that MPA does not carry: each end's values stay local.
  uint8_t flow_control = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t srq = 0;
};

// How far an id has come. InfiniBand's attributes of its queue pair depend on that.
enum class Stage : uint8_t {
  kNoPath,    // the route to the peer is not resolved
  kPath,      // it is resolved
  kAsked,     // active: a Request was sent
  kAnswered,  // the terms of both ends are known: the queue pair can go to RTR and RTS
  kOver,      // rejected, failed or disconnected
};

// The queue pair attributes for the connection of an id.
struct Terms {
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;  // how often a peer retries that finds no receive here
  uint8_t timeout = 0;          // in the form of RDMA_OPTION_ID_ACK_TIMEOUT
};

inline Terms terms_of(const ConnParam& param) {
  return {.responder_resources = param.responder_resources,
          .initiator_depth = param.initiator_depth,
          .retry_count = std::min<uint8_t>(param.retry_count, core::kMostRetries),
          .rnr_retry_count = std::min<uint8_t>(param.rnr_retry_count, core::kMostRetries)};
}

// Addresses and device of an id, for QUERY and INIT_QP_ATTR commands.
struct Route {
  Service service = Service::kConnection;
  uint64_t node_guid = 0;  // host order; 0 while not bound to a device
  const device::Device* device = nullptr;
  sockaddr_storage source{}, destination{};  // ss_family 0 while unknown
  Stage stage = Stage::kNoPath;
  Terms terms;
  uint8_t traffic_class = 0;
};

struct Event {
  EventType type = EventType::kAddrResolved;
  uint64_t uid = 0;  // of the id (CONNECT_REQUEST: of the listener; MULTICAST: of the membership)
  uint32_t id = 0;   // CONNECT_REQUEST: the new id; MULTICAST: the membership
  int status = 0;    // 0 or negative errno
  ConnParam param;
  uint64_t argument = 0;  // kUser, kInternal
  // For ids for datagrams. Has a destination when the event tells one to send to, which may be a
  // group.
  Route route;
};

}  // namespace uiw::cm
