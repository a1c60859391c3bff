// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/cache.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "core/descriptors.h"
#include "core/gid.h"
#include "core/no_cancellation.h"
#include "core/raw_sys.h"
#include "device/interface.h"

namespace uiw::device {
namespace {

namespace sys = core::sys;

// How long the kernel's answer is waited for. rtnl_link_alloc_cache() does not say that its request
// could not be sent (libnl 3.7, link_request_update()), and then waits for an answer to nothing.
// What was sent is answered within sendmsg(), so that any time is long enough; all signals are
// blocked meanwhile (core/fork_mutex.h), so that it must not be long.
constexpr timeval kAnswerWait{.tv_sec = 1, .tv_usec = 0};

struct SocketFree {
  void operator()(nl_sock* socket) const {
    // It closes by the C library, whose hook would leave the stack's own descriptors open.
    core::release_descriptor(nl_socket_get_fd(socket));
    nl_socket_free(socket);
  }
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
    case NLE_AGAIN:  // kAnswerWait is over
      return ETIMEDOUT;
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
  interface.is_bridge = rtnl_link_get_family(link) == AF_BRIDGE;
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
      interface.addresses.push_back(core::mapped(ipv4));
    } else if (nl_addr_get_family(local) == AF_INET6 &&
               nl_addr_get_len(local) == sizeof(in6_addr)) {
      in6_addr ipv6;
      std::memcpy(&ipv6, octets, sizeof ipv6);
      interface.addresses.push_back(ipv6);
    }
  }
}

// libnl's own nl_connect() has one error for all that socket() may say.
int connect(Socket& socket) {
  socket.reset(nl_socket_alloc());
  if (!socket) return ENOMEM;
  const int fd = sys::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -fd;
  sockaddr_nl any{};
  any.nl_family = AF_NETLINK;
  int error = sys::bind(fd, reinterpret_cast<sockaddr*>(&any), sizeof any);
  if (error == 0)
    error = sys::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kAnswerWait, sizeof kAnswerWait);
  if (error == 0 && nl_socket_set_fd(socket.get(), NETLINK_ROUTE, fd) < 0) error = -EIO;
  if (error < 0) sys::close(fd);
  return -error;
}

// Reads every link and address into two caches that this makes.
int fill(nl_cache*& links, nl_cache*& addresses) {
  Socket socket;
  if (const int error = connect(socket)) return error;
  int result = rtnl_link_alloc_cache(socket.get(), AF_UNSPEC, &links);
  if (result == 0) result = rtnl_addr_alloc_cache(socket.get(), &addresses);
  return result < 0 ? to_errno(result) : 0;
}

// A bridge tells of its ports by messages of its own, about interfaces that are there without them.
// libnl has them with the family AF_BRIDGE, as it has the bridge itself.
void describe_all(nl_cache* links, nl_cache* addresses, std::vector<Interface>& interfaces) {
  const auto is_there = [&](rtnl_link* link) {
    const auto ifindex = static_cast<unsigned>(rtnl_link_get_ifindex(link));
    return std::ranges::count(interfaces, ifindex, &Interface::ifindex) > 0;
  };
  const auto add_those = [&](bool of_a_bridge) {
    for (nl_object* object = nl_cache_get_first(links); object != nullptr;
         object = nl_cache_get_next(object)) {
      auto* link = reinterpret_cast<rtnl_link*>(object);
      if (rtnl_link_get_name(link) == nullptr) continue;
      if ((rtnl_link_get_family(link) != AF_UNSPEC) != of_a_bridge) continue;
      if (of_a_bridge && is_there(link)) continue;
      Interface interface = describe(link);
      add_addresses(addresses, interface);
      interfaces.push_back(std::move(interface));
    }
  };
  add_those(false);
  add_those(true);
}

}  // namespace

// libnl sends and receives by the C library, in cancellation points.
int read_interfaces(std::vector<Interface>& interfaces) {
  const core::NoCancellation whole;
  nl_cache *links = nullptr, *addresses = nullptr;
  const int error = fill(links, addresses);
  const Cache free_links(links), free_addresses(addresses);
  if (error == 0) describe_all(links, addresses, interfaces);
  return error;
}

// libnl has a cache manager for this. It frees a socket twice, which ends the process, when there
// is no descriptor for the second one that it opens (libnl 3.7, nl_cache_mngr_alloc()).
std::unique_ptr<InterfaceWatch> InterfaceWatch::start(int& error) {
  const core::NoCancellation whole;
  std::unique_ptr<InterfaceWatch> watch(new (std::nothrow) InterfaceWatch);
  error = watch == nullptr ? ENOMEM : watch->open();
  if (error != 0) watch.reset();
  return watch;
}

int InterfaceWatch::open() {
  Socket told;
  if (const int error = connect(told)) return error;
  told_ = told.release();
  nl_socket_disable_seq_check(told_);
  int result = nl_socket_set_nonblocking(told_);
  if (result == 0) {
    result = nl_socket_add_memberships(told_, RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR,
                                       RTNLGRP_IPV6_IFADDR, RTNLGRP_NONE);
  }
  if (result == 0) {
    const auto take = [](nl_msg* message, void* watch) {
      nl_msg_parse(
          message,
          [](nl_object* object, void* data) {
            auto* into = static_cast<InterfaceWatch*>(data);
            const bool link = std::strcmp(nl_object_get_type(object), "route/link") == 0;
            nl_cache_include(link ? into->links_ : into->addresses_, object, nullptr, nullptr);
          },
          watch);
      return static_cast<int>(NL_OK);
    };
    result = nl_socket_modify_cb(told_, NL_CB_VALID, NL_CB_CUSTOM, take, this);
  }
  if (result < 0) return to_errno(result);
  return fill(links_, addresses_);  // what changes meanwhile waits in the socket
}

InterfaceWatch::~InterfaceWatch() {
  const core::NoCancellation whole;
  if (told_ != nullptr) SocketFree()(told_);
  if (links_ != nullptr) nl_cache_free(links_);
  if (addresses_ != nullptr) nl_cache_free(addresses_);
}

int InterfaceWatch::fd() const {
  return nl_socket_get_fd(told_);
}

// Takes in all that waits in the socket. False when something was lost (ENOBUFS) or not understood.
bool InterfaceWatch::take_in() {
  constexpr int kErrors = 8;  // one is what is to be expected
  for (int errors = 0; errors < kErrors;) {
    const int result = nl_recvmsgs_default(told_);
    if (result == -NLE_AGAIN) return errors == 0;
    if (result < 0) ++errors;
  }
  return false;
}

int InterfaceWatch::read(std::vector<Interface>& interfaces) {
  const core::NoCancellation whole;
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
