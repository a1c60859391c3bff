// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a history's numbers are called. A file may hold any.
#include <infiniband/verbs.h>

#include <cstdio>
#include <cstring>
#include <span>

#include "core/gid.h"
#include "core/printable.h"
#include "core/verbs_names.h"
#include "trace/history.h"

namespace uiw::trace {
namespace {

// By value, rdma_cm_event_type, without RDMA_CM_EVENT_.
constexpr const char* kCmEvents[] = {
    "ADDR_RESOLVED",   "ADDR_ERROR",       "ROUTE_RESOLVED", "ROUTE_ERROR",
    "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR",  "UNREACHABLE",
    "REJECTED",        "ESTABLISHED",      "DISCONNECTED",   "DEVICE_REMOVAL",
    "MULTICAST_JOIN",  "MULTICAST_ERROR",  "ADDR_CHANGE",    "TIMEWAIT_EXIT",
};

// By value, ibv_event_type, without IBV_EVENT_.
constexpr const char* kAsyncEvents[] = {
    "CQ_ERR",
    "QP_FATAL",
    "QP_REQ_ERR",
    "QP_ACCESS_ERR",
    "COMM_EST",
    "SQ_DRAINED",
    "PATH_MIG",
    "PATH_MIG_ERR",
    "DEVICE_FATAL",
    "PORT_ACTIVE",
    "PORT_ERR",
    "LID_CHANGE",
    "PKEY_CHANGE",
    "SM_CHANGE",
    "SRQ_ERR",
    "SRQ_LIMIT_REACHED",
    "QP_LAST_WQE_REACHED",
    "CLIENT_REREGISTER",
    "GID_CHANGE",
    "WQ_FATAL",
};

std::string named(std::span<const char* const> names, uint8_t value) {
  return value < names.size() ? names[value] : std::to_string(value);
}

std::string endpoint(const uint8_t (&address)[16], uint16_t port) {
  in6_addr gid;
  std::memcpy(&gid, address, sizeof gid);
  const std::string text = core::text_of(gid).text;
  return (IN6_IS_ADDR_V4MAPPED(&gid) ? text : "[" + text + "]") + ":" + std::to_string(port);
}

std::string error_name(uint32_t error) {
  const char* const name = strerrorname_np(static_cast<int>(error));
  return name ? name : std::to_string(error);
}

}  // namespace

std::string number_of(const History& history, size_t queue_pair) {
  if (queue_pair == kNobody) return "-";
  char text[16];
  std::snprintf(text, sizeof text, "0x%06x", history.queue_pairs[queue_pair].number);
  return text;
}

std::string opcode_of(uint8_t opcode, bool is_receive) {
  if (is_receive) return "RECV";
  if (opcode < core::opcode_names().size()) return core::opcode_names()[opcode];
  return "opcode " + std::to_string(opcode);
}

std::string opcode_of(const Request& request) {
  return opcode_of(request.opcode, request.is_receive);
}

std::string status_of(const Request& request) {
  switch (request.outcome) {
    case Outcome::kOpen:
      return "open";
    case Outcome::kUnsignaled:
      return "unsignaled";
    case Outcome::kCompleted:
      break;
  }
  return named(core::status_names(), request.status);
}

std::string local_of(const QueuePair& qp) {
  return qp.is_connected ? endpoint(qp.addresses.local, qp.addresses.local_port) : "-";
}

std::string peer_of(const QueuePair& qp) {
  return qp.is_connected ? endpoint(qp.addresses.peer, qp.addresses.peer_port) : "-";
}

std::string text_of(const Event& event) {
  const Record& record = event.record;
  char text[80];
  switch (record.kind) {
    case Kind::kCreated: {
      const char* const type = core::name_of_type(record.opcode);
      return std::string("created, ") + (type ? type : "?");
    }
    case Kind::kDestroyed:
      return "destroyed";
    case Kind::kState:
      return std::string("state ") + (record.opcode <= IBV_QPS_ERR
                                          ? core::name_of(static_cast<ibv_qp_state>(record.opcode))
                                          : "?");
    case Kind::kConnected:
      return "connected " + endpoint(record.addresses.local, record.addresses.local_port) + " " +
             endpoint(record.addresses.peer, record.addresses.peer_port);
    case Kind::kRefused:
      return "post refused: " + error_name(record.work.error);
    case Kind::kAwaited:
      std::snprintf(text, sizeof text, "a message waited %.3f us for a receive",
                    static_cast<double>(record.work.bytes) / 1000);
      return record.flags & kInVain ? std::string(text) + " in vain: the connection ended" : text;
    case Kind::kPeerRefused:
      return "the peer may not use the memory that it named";
    case Kind::kCmEvent:
      return "rdma_cm " + named(kCmEvents, record.opcode) +
             (record.work.error ? " " + std::to_string(static_cast<int32_t>(record.work.error))
                                : "");
    case Kind::kAsyncEvent:
      return "asynchronous event " + named(kAsyncEvents, record.opcode);
    case Kind::kFault:
      return "fault of line " + std::to_string(record.fault.line) + ": " +
             core::printable(
                 {record.fault.what, strnlen(record.fault.what, sizeof record.fault.what)});
    default:
      return "?";
  }
}

}  // namespace uiw::trace
