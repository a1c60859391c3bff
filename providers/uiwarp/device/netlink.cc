// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/if.h>
#include <linux/if_addr.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "core/descriptors.h"
#include "device/interface.h"

namespace uiw::device {
namespace {

struct SocketFree {
  void operator()(nl_sock* socket) const { nl_socket_free(socket); }
};
struct CacheFree {
  void operator()(nl_cache* cache) const { nl_cache_free(cache); }
};
using Socket = std::unique_ptr<nl_sock, SocketFree>;
using Cache = std::unique_ptr<nl_cache, CacheFree>;

int to_errno(int nl_error) {
  switch (nl_error < 0 ? -nl_error : nl_error) {
    case NLE_NOMEM:
      return ENOMEM;
    case NLE_PERM:
    case NLE_NOACCESS:
      return EPERM;
    case NLE_AF_NOSUPPORT:
    case NLE_PROTO_MISMATCH:
      return EAFNOSUPPORT;
    default:
      return EIO;
  }
}

Interface describe(rtnl_link* link) {
  Interface interface;
  interface.name = rtnl_link_get_name(link);
  interface.ifindex = static_cast<unsigned>(rtnl_link_get_ifindex(link));
  const unsigned flags = rtnl_link_get_flags(link);
  interface.up = (flags & IFF_UP) != 0;
  interface.carrier = (flags & IFF_LOWER_UP) != 0;
  interface.mtu = rtnl_link_get_mtu(link);
  nl_addr* mac = rtnl_link_get_addr(link);
  if (mac != nullptr && nl_addr_get_len(mac) == sizeof interface.mac) {
    std::memcpy(interface.mac, nl_addr_get_binary_addr(mac), sizeof interface.mac);
    interface.has_mac = true;
  }
  return interface;
}

void add_addresses(nl_cache* cache, Interface& interface) {
  for (nl_object* object = nl_cache_get_first(cache); object != nullptr;
       object = nl_cache_get_next(object)) {
    auto* entry = reinterpret_cast<rtnl_addr*>(object);
    if (rtnl_addr_get_ifindex(entry) != static_cast<int>(interface.ifindex)) continue;
    // Another host answered for this IPv6 address: the kernel won't use it.
    if ((rtnl_addr_get_flags(entry) & IFA_F_DADFAILED) != 0) continue;
    nl_addr* local = rtnl_addr_get_local(entry);
    if (local == nullptr) continue;
    const void* octets = nl_addr_get_binary_addr(local);
    if (nl_addr_get_family(local) == AF_INET && nl_addr_get_len(local) == sizeof(in_addr)) {
      in_addr ipv4;
      std::memcpy(&ipv4, octets, sizeof ipv4);
      interface.addresses.push_back(mapped(ipv4));
    } else if (nl_addr_get_family(local) == AF_INET6 &&
               nl_addr_get_len(local) == sizeof(in6_addr)) {
      in6_addr ipv6;
      std::memcpy(&ipv6, octets, sizeof ipv6);
      interface.addresses.push_back(ipv6);
    }
  }
}

int connect(Socket& socket) {
  socket.reset(nl_socket_alloc());
  if (!socket) return ENOMEM;
  const int error = nl_connect(socket.get(), NETLINK_ROUTE);
  return error < 0 ? to_errno(error) : 0;
}

void describe_all(nl_cache* links, nl_cache* addresses, std::vector<Interface>& interfaces) {
  for (nl_object* object = nl_cache_get_first(links); object != nullptr;
       object = nl_cache_get_next(object)) {
    auto* link = reinterpret_cast<rtnl_link*>(object);
    // A bridge tells of its ports by messages of its own, about the same interfaces.
    if (rtnl_link_get_family(link) != AF_UNSPEC || rtnl_link_get_name(link) == nullptr) continue;
    Interface interface = describe(link);
    add_addresses(addresses, interface);
    interfaces.push_back(std::move(interface));
  }
}

}  // namespace

int read_interfaces(std::vector<Interface>& interfaces) {
  Socket socket;
  if (int error = connect(socket)) return error;

  nl_cache* found = nullptr;
  if (int error = rtnl_link_alloc_cache(socket.get(), AF_UNSPEC, &found); error < 0) {
    return to_errno(error);
  }
  Cache links(found);
  if (int error = rtnl_addr_alloc_cache(socket.get(), &found); error < 0) return to_errno(error);
  Cache addresses(found);
  describe_all(links.get(), addresses.get(), interfaces);
  return 0;
}

std::unique_ptr<InterfaceWatch> InterfaceWatch::start(int& error) {
  std::unique_ptr<InterfaceWatch> watch(new (std::nothrow) InterfaceWatch);
  error = ENOMEM;
  if (watch == nullptr) return nullptr;
  int result = nl_cache_mngr_alloc(nullptr, NETLINK_ROUTE, 0, &watch->manager_);
  if (result == 0) {
    result = nl_cache_mngr_add(watch->manager_, "route/link", nullptr, nullptr, &watch->links_);
  }
  if (result == 0) {
    result = nl_cache_mngr_add(watch->manager_, "route/addr", nullptr, nullptr, &watch->addresses_);
  }
  if (result == 0) {
    core::adopt_descriptor(watch->fd());
    return watch;
  }
  error = to_errno(result);
  return nullptr;
}

InterfaceWatch::~InterfaceWatch() {
  if (manager_ == nullptr) return;
  core::release_descriptor(fd());
  nl_cache_mngr_free(manager_);
}

int InterfaceWatch::fd() const {
  return nl_cache_mngr_get_fd(manager_);
}

// Takes in all that waits in the socket. False when something was lost (ENOBUFS) or not understood.
bool InterfaceWatch::take_in() {
  constexpr int kErrors = 8;  // one is what is to be expected
  for (int i = 0; i < kErrors; ++i) {
    const int result = nl_cache_mngr_data_ready(manager_);
    if (result >= 0 || result == -NLE_AGAIN) return i == 0;
  }
  return false;
}

int InterfaceWatch::read(std::vector<Interface>& interfaces) {
  if (!take_in()) {
    // Only now that the socket is empty: what waits there is older than the answer to this.
    Socket socket;
    if (int error = connect(socket)) return error;
    int result = nl_cache_refill(socket.get(), links_);
    if (result >= 0) result = nl_cache_refill(socket.get(), addresses_);
    if (result < 0) return to_errno(result);
  }
  describe_all(links_, addresses_, interfaces);
  return 0;
}

}  // namespace uiw::device
