// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Addresses, routes and options of ids.
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/manager.h"
#include "cm/refusals.h"
#include "core/raw_sys.h"
#include "transport/addresses.h"
#include "transport/bind_alone.h"

namespace uiw::cm {
namespace {

// Checks that an id may have this address. 0 or errno; `device` is null for the wildcard.
int check_own_address(const sockaddr_storage& address, const device::Device*& device) {
  device = nullptr;
  if (!transport::is_ip(address)) return EAFNOSUPPORT;
  if (transport::is_wildcard(address)) return 0;
  if (transport::is_link_local_without_scope(address)) return EINVAL;
  device = device::find_by_address(address);
  if (device != nullptr) return 0;
  return device::is_local_address(address) ? ENODEV : EADDRNOTAVAIL;
}

// Refreshes the devices before an address is declared to belong to none: it may be new, as
// interfaces are not followed while no device is open. Call it without a lock.
void look_for(const sockaddr_storage& address) {
  if (!transport::is_ip(address) || transport::is_wildcard(address)) return;
  if (device::find_by_address(address) == nullptr) device::refresh();
}

// As in Linux, a link-local destination without a scope is on the interface of the source: programs
// name the interface once, in rdma_bind_addr().
void take_scope_of_source(const sockaddr_storage& from, sockaddr_storage& to) {
  if (!transport::is_link_local_without_scope(to) || !transport::is_ip(from)) return;
  if (const device::Device* const device = device::find_by_address(from))
    reinterpret_cast<sockaddr_in6&>(to).sin6_scope_id = device->ifindex;
}

// Whether the address covers IPv4 addresses, too.
bool is_everywhere(const Id& id, const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 && transport::is_wildcard(address) && !id.v6_only;
}

// Whether some address of this host is covered by both; a wildcard covers all.
bool overlap(const Id& one, const sockaddr_storage& a, const Id& other, const sockaddr_storage& b) {
  if (transport::port_of(a) != transport::port_of(b)) return false;
  if (a.ss_family != b.ss_family) return is_everywhere(one, a) || is_everywhere(other, b);
  return transport::is_wildcard(a) || transport::is_wildcard(b) || transport::same_host(a, b);
}

// Binds so that no other socket can get the port, and peers that are told the port reach no one
// else. If the program asks for reuse, others that also ask for it can have the port until one
// listens.
core::Result<int> bind_for(const Id& id, const sockaddr_storage& address) {
  transport::BindOptions options;
  options.v6_only = id.v6_only;
  options.tos = id.tos;
  if (id.asked_reuse) return transport::bind_tcp(address, options);
  core::Result<int> fd = transport::bind_alone(address, options, transport::Beside::kNothing);
  if (fd || fd.error() != EADDRINUSE) return fd;
  return transport::bind_alone(address, options, transport::Beside::kOldConnections);
}

}  // namespace

// Like Linux's cma_check_port(): whether another id is or was bound to this address, listens there
// or connects from it. With `may_share`, ids that allow sharing do not count. A linear search, but
// explicit ports are rare and long-lived.
bool Manager::is_taken(const Id& id, const sockaddr_storage& address, bool may_share) const {
  if (transport::port_of(address) == 0) return false;
  for (const Id* other = ids_.next(0); other != nullptr; other = ids_.next(other->number)) {
    if (other != &id && other->holds_port && overlap(*other, other->source, id, address) &&
        !(may_share && other->asked_reuse))
      return true;
  }
  return false;
}

int Manager::bind_locked(Id& id, const sockaddr_storage& address) {
  const device::Device* device;
  int error = check_own_address(address, device);
  // Linux has no device for a loopback address. A program that also names a port wants to be
  // reached there and gets our loopback device at once; others get it when they listen. libfabric
  // must not get it: it binds to localhost to learn which devices exist, and would drop all but the
  // one that this chooses.
  if ((error == 0 || error == ENODEV) && id.service != Service::kDatagrams &&
      transport::is_loopback(address) && transport::port_of(address) == 0) {
    error = 0;
    device = nullptr;
  }
  if (error != 0) return error;
  // A port for datagrams that the program has chosen is not held before the id listens: rsockets
  // name the port of a UDP socket that they own, and never listen.
  const bool held = id.service == Service::kConnection ||
                    (id.service == Service::kDatagrams && transport::port_of(address) == 0);
  if (!held) {
    id.source = address;
  } else if ((error = hold_port(id, address)) != 0) {
    return error;
  }
  id.device = device;
  id.state = IdState::kBound;
  return 0;
}

// Binds a socket to this address, which becomes the id's source, with the port that the socket got.
int Manager::hold_port(Id& id, const sockaddr_storage& address) {
  if (is_taken(id, address, id.asked_reuse)) return EADDRINUSE;
  core::Result<int> fd = bind_for(id, address);
  if (!fd) return fd.error();
  sockaddr_storage source = address;
  socklen_t size = sizeof source;
  const int error = core::sys::getsockname(*fd, reinterpret_cast<sockaddr*>(&source), &size);
  if (error < 0) {
    core::sys::close(*fd);
    return -error;
  }
  id.source = source;
  id.holds_port = true;
  id.bound_socket.take(*fd);
  return 0;
}

int Manager::bind(Channel& channel, uint32_t number, const sockaddr_storage& address) {
  look_for(address);
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  if (id->state != IdState::kIdle)
    return refuse_by_state(*id, "rdma_bind_addr", "once, before all others");
  if ((error = bind_locked(*id, address)) != 0)
    return refuse_address(*id, "rdma_bind_addr", address, error);
  return 0;
}

int Manager::resolve_address(Channel& channel, uint32_t number, const sockaddr_storage& source,
                             const sockaddr_storage& destination) {
  static constexpr char kCall[] = "rdma_resolve_addr";
  static constexpr char kTwoFamilies[] = "source and destination are one of IPv4 and one of IPv6";
  look_for(source);
  uint64_t serial;
  sockaddr_storage to = destination;
  sockaddr_storage from{};
  IdState before;
  {
    std::lock_guard hold(lock_);
    int error;
    Id* id = find(channel, number, error);
    if (id == nullptr) return error;
    if (!transport::is_ip(destination))
      return core::refuse_because(id->told, EAFNOSUPPORT, kCall,
                                  "the destination is neither an IPv4 nor an IPv6 address");
    if (source.ss_family != 0 && source.ss_family != destination.ss_family)
      return core::refuse_because(id->told, EINVAL, kCall, kTwoFamilies);
    if (id->state == IdState::kIdle) {
      // A source without a port, or none at all, is bound by connect().
      if (source.ss_family != 0 && transport::port_of(source) != 0) {
        error = bind_locked(*id, source);
      } else if (source.ss_family != 0) {
        error = check_own_address(source, id->device);
        if (error == 0) id->source = source;
      }
      if (error != 0) return refuse_address(*id, kCall, source, error);
    } else if (id->state != IdState::kBound) {
      return refuse_by_state(*id, kCall, "once, first of all or after rdma_bind_addr");
    } else if (id->source.ss_family != to.ss_family) {
      return core::refuse_because(id->told, EINVAL, kCall, kTwoFamilies);
    }
    before = id->state;
    id->state = IdState::kResolvingAddress;
    serial = id->serial;
    from = id->source;
  }

  // Like the kernel, takes the wildcard as a destination for this host.
  if (transport::is_wildcard(to)) {
    sockaddr_storage self = transport::loopback(to.ss_family, transport::port_of(to));
    if (from.ss_family != 0 && !transport::is_wildcard(from)) {
      self = from;
      transport::set_port(self, transport::port_of(to));
    }
    to = self;
  }
  take_scope_of_source(from, to);
  sockaddr_storage routed{};
  // Datagrams to a group leave from the address that the program named, no matter what the routes
  // are.
  const bool any_route =
      transport::is_multicast(to) && from.ss_family != 0 && !transport::is_wildcard(from);
  int error = any_route ? 0 : device::route_source(to, routed);
  if (error == 0 && from.ss_family != 0 && !transport::is_wildcard(from)) routed = from;
  transport::set_port(routed, transport::port_of(from));
  if (error == 0) look_for(routed);
  const device::Device* device = error == 0 ? device::find_by_address(routed) : nullptr;
  if (error == 0 && device == nullptr) error = ENODEV;

  std::lock_guard hold(lock_);
  Id* id = find_again(number, serial);
  if (id == nullptr) return 0;  // destroyed by another thread: no event
  if (error != 0) {
    id->state = before;
    push(*id, EventType::kAddrError, -error);
    return 0;
  }
  id->source = routed;
  id->destination = to;
  id->device = device;
  id->state = IdState::kAddressResolved;
  push(*id, EventType::kAddrResolved, 0);
  return 0;
}

// There is nothing to resolve on iWARP: the host routes every packet.
int Manager::resolve_route(Channel& channel, uint32_t number) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  if (id->state != IdState::kAddressResolved)
    return refuse_by_state(*id, "rdma_resolve_route", "once, after RDMA_CM_EVENT_ADDR_RESOLVED");
  id->state = IdState::kRouteResolved;
  push(*id, EventType::kRouteResolved, 0);
  return 0;
}

namespace {

Stage stage_of(IdState state) {
  switch (state) {
    case IdState::kIdle:
    case IdState::kBound:
    case IdState::kResolvingAddress:
    case IdState::kAddressResolved:
    case IdState::kListening:
      return Stage::kNoPath;
    case IdState::kRouteResolved:
      return Stage::kPath;
    case IdState::kConnecting:
      return Stage::kAsked;
    case IdState::kAnswered:
    case IdState::kRequested:
    case IdState::kAccepting:
    case IdState::kConnected:
      return Stage::kAnswered;
    case IdState::kEnded:
      break;
  }
  return Stage::kOver;
}

}  // namespace

Route Manager::route_of(const Id& id) {
  Route route;
  route.service = id.service;
  route.source = id.source;
  route.destination = id.destination;
  route.device = id.device;
  route.node_guid = id.device == nullptr ? 0 : id.device->node_guid;
  route.stage = stage_of(id.state);
  route.terms = id.terms;
  route.terms.timeout = id.ack_timeout.value_or(kUsualAckTimeout);
  route.traffic_class = id.tos < 0 ? 0 : static_cast<uint8_t>(id.tos);
  return route;
}

int Manager::query(Channel& channel, uint32_t number, Route& route) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  route = route_of(*id);
  return 0;
}

int Manager::refuse_attributes(Channel& channel, uint32_t number) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  // librdmacm asks for attributes in several calls, and the command does not say in which.
  return refuse_by_state(*id,
                         "rdma_init_qp_attr (also in rdma_create_qp, rdma_accept and, for "
                         "RDMA_CM_EVENT_CONNECT_RESPONSE, rdma_get_cm_event)",
                         "with the id of RDMA_CM_EVENT_CONNECT_REQUEST, or after "
                         "RDMA_CM_EVENT_CONNECT_RESPONSE, before the connection is over");
}

int Manager::set_v6_only(Id& id, bool only) {
  const bool before = std::exchange(id.v6_only, only);
  if (only == before || !id.bound_socket.is_open() || id.source.ss_family != AF_INET6) return 0;
  // TCP accepts the option only before bind(), so bind a second socket. Two sockets that do not
  // listen may share a port.
  const int held = id.bound_socket.release();
  transport::let_reuse_address(held, true);
  const int error = hold_port(id, id.source);
  if (error == 0) {
    core::sys::close(held);
  } else {
    transport::let_reuse_address(held, id.asked_reuse);
    id.bound_socket.take(held);
    id.v6_only = before;
  }
  return error;
}

int Manager::set_option(Channel& channel, uint32_t number, Option option, core::Bytes value) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  auto flag = [&value](bool& out) {
    int number_given = 0;
    if (value.size() != sizeof number_given) return false;
    std::memcpy(&number_given, value.data(), sizeof number_given);
    out = number_given != 0;
    return true;
  };
  switch (option) {
    case Option::kTos:
      if (value.size() != 1) return EINVAL;
      id->tos = value[0];
      if (id->bound_socket.is_open())
        transport::set_tos(id->bound_socket.get(), id->source.ss_family, id->tos);
      return 0;
    case Option::kReuseAddress: {
      // Applies to what is bound to the port from now on.
      bool reuse;
      if (!flag(reuse)) return EINVAL;
      if (id->state == IdState::kListening || (!reuse && id->state != IdState::kIdle))
        return refuse_by_state(*id, "rdma_set_option of RDMA_OPTION_ID_REUSEADDR",
                               "to 1 before rdma_listen, to 0 before rdma_bind_addr");
      id->asked_reuse = reuse;
      if (id->bound_socket.is_open()) transport::let_reuse_address(id->bound_socket.get(), reuse);
      return 0;
    }
    case Option::kV6Only: {
      bool only;
      if (!flag(only)) return EINVAL;
      if (id->state != IdState::kIdle && id->state != IdState::kBound)
        return refuse_by_state(*id, "rdma_set_option of RDMA_OPTION_ID_AFONLY",
                               "before rdma_listen and rdma_resolve_addr");
      return set_v6_only(*id, only);
    }
    case Option::kAckTimeout:
      // For connections made from now on. As in the kernel, the value is not checked.
      if (value.size() != 1) return EINVAL;
      id->ack_timeout = value[0];
      return 0;
  }
  return ENOSYS;
}

}  // namespace uiw::cm
