// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// RDMA connection management for iWARP: what the kernel's rdma_cm + iw_cm do for a hardware RNIC,
// here over plain TCP sockets. Knows nothing of the ucma command format (vkernel/ucma does).
// The words that its interface (manager.h) is spoken in.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

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
  kUser = 18,      // made by the application itself (write_event), rdma-core 60 and later
  kInternal = 19,  // made by librdmacm itself
};

enum class PortSpace : uint16_t {  // values of rdma_ucm_port_space
  kIpoib = 0x0002,
  kTcp = 0x0106,
  kUdp = 0x0111,
  kIb = 0x013f,
};

struct ConnParam {
  uint8_t private_data[256] = {};
  uint8_t private_data_len = 0;
  uint8_t responder_resources = 0;  // IRD: reads the peer may have outstanding towards us
  uint8_t initiator_depth = 0;      // ORD: reads we may have outstanding
  uint32_t qp_num = 0;
};

struct Event {
  EventType type = EventType::kAddrResolved;
  uint64_t uid = 0;  // of the id (CONNECT_REQUEST: of the listener)
  uint32_t id = 0;   // CONNECT_REQUEST: the new id
  int status = 0;    // 0 or negative errno
  ConnParam param;
  uint64_t argument = 0;  // kUser, kInternal
};

// Addresses and device of an id, for QUERY commands.
struct Route {
  uint64_t node_guid = 0;                    // host order; 0 while not bound to a device
  sockaddr_storage source{}, destination{};  // ss_family 0 while unknown
};

}  // namespace uiw::cm
