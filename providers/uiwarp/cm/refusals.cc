// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/refusals.h"

#include <cerrno>

#include "core/explain_of.h"
#include "core/gid.h"
#include "core/log.h"
#include "transport/addresses.h"

namespace uiw::cm {
namespace {

// The reason, for errors that the program can do something about. Null: the errno says enough.
const char* reason_of(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the port is taken by another id or by a TCP socket; use another port";
    case EADDRNOTAVAIL:
      return "it is no address of this host (`uiwarp devices` shows what there is)";
    case ENODEV:
      return "it is an address of this host whose interface has no RDMA device; use that of one "
             "that has (`uiwarp devices`), or see UIWARP_DEVICES";
    case EAFNOSUPPORT:
      return "it is neither an IPv4 nor an IPv6 address";
    case EINVAL:
      return "it is a link-local address without the interface that it belongs to (sin6_scope_id)";
    case EACCES:
      return "ports below 1024 need CAP_NET_BIND_SERVICE";
    default:
      return nullptr;
  }
}

}  // namespace

const char* clause_of(IdState state) {
  switch (state) {
    case IdState::kIdle:
      return "it has no address yet";
    case IdState::kBound:
      return "it is bound to an address and no more";
    case IdState::kResolvingAddress:
      return "rdma_resolve_addr is running in another thread";
    case IdState::kAddressResolved:
      return "its address is resolved, its route is not";
    case IdState::kRouteResolved:
      return "its route is resolved, and it is not connected";
    case IdState::kListening:
      return "it listens";
    case IdState::kConnecting:
      return "it is connecting";
    case IdState::kAnswered:
      return "the peer has accepted";
    case IdState::kRequested:
      return "it is a request that waits to be accepted or rejected";
    case IdState::kAccepting:
      return "it was accepted already";
    case IdState::kConnected:
      return "it is connected already";
    case IdState::kEnded:
      return "its connection was rejected, has failed or has ended";
  }
  return "";
}

int refuse_by_state(Id& id, const char* call, const char* allowed) {
  return core::refuse_of(call, id.told, EINVAL, "%s: not with this id now: %s. Call it %s", call,
                         clause_of(id.state), allowed);
}

int refuse_private_data(Id& id, const char* call, size_t size, size_t room) {
  return core::refuse_of(call, id.told, EINVAL,
                         "%s: private_data_len is %zu, there is room for %zu bytes", call, size,
                         room);
}

int refuse_address(Id& id, const char* call, const sockaddr_storage& address, int error) {
  const bool is_ip = transport::is_ip(address);
  const uint16_t port = is_ip ? transport::port_of(address) : 0;
  if (is_ip && port == 0) return error;
  const char* const reason = reason_of(error);
  if (!reason || !core::log_enabled(core::LogLevel::kWarn)) return error;
  if (!core::first_of(call, id.told, reason)) return error;
  const core::GidText host = core::text_of(core::gid_of(address));
  core::log(core::LogLevel::kWarn, "%s: %s, port %u: %s", call, is_ip ? host.text : "the address",
            port, reason);
  return error;
}

int refuse_service(Id& id, const char* call) {
  return core::refuse_of(
      call, id.told, EOPNOTSUPP,
      "%s: devices of this face do not have it for the port space of this id: RDMA_PS_TCP is for "
      "connections; RDMA_PS_UDP and multicast are of UIWARP_FACE=roce (uiwarp run --as roce)",
      call);
}

int refuse_queue_pair(Id& id, const char* call, uint32_t qp_num, bool exists) {
  if (exists)
    return core::refuse_of(
        call, id.told, EINVAL,
        "%s: queue pair 0x%06x is connected, or was, or is in a state that allows "
        "no connection: each connection takes a new one, or one moved back to "
        "RESET and INIT",
        call, qp_num);
  return core::refuse_of(call, id.told, EINVAL,
                         "%s: the id has no queue pair (qp_num 0x%06x names none of this process): "
                         "call rdma_create_qp before, or set qp_num of rdma_conn_param",
                         call, qp_num);
}

}  // namespace uiw::cm
