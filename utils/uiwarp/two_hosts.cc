// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "two_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>

namespace uiw::tool {
namespace {

constexpr char kInterface[] = "eth0";
constexpr int kPrefixLength = 24, kPrefixLength6 = 64;

using Socket = std::unique_ptr<nl_sock, decltype(&nl_socket_free)>;
using Link = std::unique_ptr<rtnl_link, decltype(&rtnl_link_put)>;
using Address = std::unique_ptr<rtnl_addr, decltype(&rtnl_addr_put)>;
using Abstract = std::unique_ptr<nl_addr, decltype(&nl_addr_put)>;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool write_file(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool good = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return good;
}

// Which switch of the system forbids it, and what to do.
std::string cure() {
  if (first_line("/proc/sys/kernel/unprivileged_userns_clone") == "0")
    return "As root: sysctl kernel.unprivileged_userns_clone=1, or start it as root.";
  if (first_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1")
    return "As root: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or start it as root.";
  if (first_line("/proc/sys/user/max_user_namespaces") == "0")
    return "As root: sysctl user.max_user_namespaces=1000, or start it as root.";
  return "In a container: start that with --security-opt seccomp=unconfined, or use two containers "
         "as two hosts (doc/containers.md). Elsewhere: start it as root.";
}

// What was refused, why by errno, and what to do. cure() reads files, and changes errno.
std::string refused(const char* what) {
  const int error = errno;
  return std::string(what) + ": " + strerror(error) + ". " + cure();
}

// Root needs no user namespace, where it is allowed to be root.
bool enter_namespaces(std::string& problem) {
  if (unshare(CLONE_NEWNET) == 0) return true;
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    problem = refused("this system does not let you make user and network namespaces");
    return false;
  }
  // The group needs it (user_namespaces(7)); older kernels have no such file.
  write_file("/proc/self/setgroups", "deny");
  if (write_file("/proc/self/uid_map", uid + " " + uid + " 1") &&
      write_file("/proc/self/gid_map", gid + " " + gid + " 1"))
    return true;
  problem = refused("the user cannot be mapped into a user namespace");
  return false;
}

int this_network() {
  return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

// The functions below return 0 or an error of libnl.

int set_up(nl_sock* socket, const char* name) {
  rtnl_link* found = nullptr;
  if (const int error = rtnl_link_get_kernel(socket, 0, name, &found); error < 0) return error;
  const Link link(found, &rtnl_link_put), change(rtnl_link_alloc(), &rtnl_link_put);
  if (!change) return -NLE_NOMEM;
  rtnl_link_set_flags(change.get(), IFF_UP);
  return rtnl_link_change(socket, link.get(), change.get(), 0);
}

int add_address(nl_sock* socket, const char* text, int prefix_length) {
  rtnl_link* found = nullptr;
  if (const int error = rtnl_link_get_kernel(socket, 0, kInterface, &found); error < 0)
    return error;
  const Link link(found, &rtnl_link_put);
  nl_addr* parsed = nullptr;
  if (const int error = nl_addr_parse(text, AF_UNSPEC, &parsed); error < 0) return error;
  const Abstract local(parsed, &nl_addr_put);
  nl_addr_set_prefixlen(local.get(), prefix_length);
  const Address address(rtnl_addr_alloc(), &rtnl_addr_put);
  if (!address) return -NLE_NOMEM;
  rtnl_addr_set_ifindex(address.get(), rtnl_link_get_ifindex(link.get()));
  if (const int error = rtnl_addr_set_local(address.get(), local.get()); error < 0) return error;
  rtnl_addr_set_flags(address.get(), IFA_F_NODAD);  // it can be used at once
  return rtnl_addr_add(socket, address.get(), NLM_F_EXCL);
}

// Of the network that this process is in: lo and eth0 with these addresses.
int configure(const char* address, const char* address6) {
  const Socket socket(nl_socket_alloc(), &nl_socket_free);
  if (!socket) return -NLE_NOMEM;
  if (const int error = nl_connect(socket.get(), NETLINK_ROUTE); error < 0) return error;
  // The kernel's own address can be used at once, too; where /proc is read-only, a second later.
  write_file("/proc/sys/net/ipv6/conf/eth0/accept_dad", "0");
  if (const int error = set_up(socket.get(), "lo"); error < 0) return error;
  if (const int error = add_address(socket.get(), address, kPrefixLength); error < 0) return error;
  // A kernel without IPv6 has no second one.
  add_address(socket.get(), address6, kPrefixLength6);
  return set_up(socket.get(), kInterface);
}

// eth0 in the network that this process is in, and its other end, eth0 in that of `other`.
int connect_to(int other, uint32_t mtu) {
  const Socket socket(nl_socket_alloc(), &nl_socket_free);
  if (!socket) return -NLE_NOMEM;
  if (const int error = nl_connect(socket.get(), NETLINK_ROUTE); error < 0) return error;
  const Link link(rtnl_link_veth_alloc(), &rtnl_link_put);
  if (!link) return -NLE_NOMEM;
  const Link peer(rtnl_link_veth_get_peer(link.get()), &rtnl_link_put);
  rtnl_link_set_name(link.get(), kInterface);
  rtnl_link_set_mtu(link.get(), mtu);
  rtnl_link_set_name(peer.get(), kInterface);
  rtnl_link_set_mtu(peer.get(), mtu);
  rtnl_link_set_ns_fd(peer.get(), other);
  return rtnl_link_add(socket.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL);
}

}  // namespace

bool make_two_hosts(uint32_t mtu, TwoHosts& hosts, std::string& problem) {
  if (!enter_namespaces(problem)) return false;
  hosts.server = this_network();
  const bool is_second_made = unshare(CLONE_NEWNET) == 0;
  hosts.client = this_network();
  if (!is_second_made || hosts.server < 0 || hosts.client < 0) {
    problem = refused("the second network namespace cannot be made");
    return false;
  }
  int error = connect_to(hosts.server, mtu);
  if (error >= 0) error = configure(kClientAddress, kClientAddress6);
  if (error >= 0 && setns(hosts.server, CLONE_NEWNET) != 0) error = -NLE_PERM;
  if (error >= 0) error = configure(kServerAddress, kServerAddress6);
  if (error >= 0) return true;
  problem = std::string("the network between the two hosts cannot be made: ") + nl_geterror(error) +
            ". " + cure();
  return false;
}

}  // namespace uiw::tool
