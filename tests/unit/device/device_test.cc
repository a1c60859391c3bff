// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Against the interfaces of the machine the test runs on, compared with getifaddrs().
#include "device/device.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "core/gid.h"
#include "device/interface.h"
#include "support/forking_handler.h"

namespace uiw::device {
namespace {

sockaddr_storage v4(const char* text, uint16_t port = 0) {
  sockaddr_storage out{};
  auto& in = reinterpret_cast<sockaddr_in&>(out);
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &in.sin_addr), 1) << text;
  return out;
}

sockaddr_storage v6(const char* text, unsigned scope = 0) {
  sockaddr_storage out{};
  auto& in = reinterpret_cast<sockaddr_in6&>(out);
  in.sin6_family = AF_INET6;
  in.sin6_scope_id = scope;
  EXPECT_EQ(inet_pton(AF_INET6, text, &in.sin6_addr), 1) << text;
  return out;
}

const Device* loopback() {
  return find_by_name("uiw_lo");
}

struct HostAddress {
  std::string interface;
  sockaddr_storage address;
};

// Addresses of interfaces that are up, as libc sees them.
std::vector<HostAddress> host_addresses() {
  std::vector<HostAddress> found;
  ifaddrs* list = nullptr;
  EXPECT_EQ(getifaddrs(&list), 0);
  for (ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    HostAddress host{entry->ifa_name, {}};
    std::memcpy(&host.address, entry->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    found.push_back(host);
  }
  freeifaddrs(list);
  return found;
}

TEST(Devices, AreTheSameForEveryThreadAndHoweverOftenLookedAt) {
  const Device* seen[4] = {};
  {
    std::vector<std::thread> threads;
    for (const Device*& slot : seen) {
      threads.emplace_back([&slot] {
        refresh();
        slot = loopback();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const Device* device : seen) EXPECT_EQ(device, loopback());
}

TEST(Devices, EveryInterfaceWithAnAddressIsThere) {
  std::set<std::string> wanted, got;
  for (const HostAddress& host : host_addresses()) wanted.insert("uiw_" + host.interface);
  for (const auto& [device, state] : devices()) {
    got.insert(device->name);
    EXPECT_EQ(device->name, "uiw_" + state.interface);
    EXPECT_FALSE(state.addresses.empty());
    EXPECT_FALSE(state.gone);
    EXPECT_NE(device->node_guid, 0u);
    EXPECT_GT(state.mtu, 0u);
  }
  EXPECT_EQ(got, wanted);
}

TEST(Devices, AreFoundByNameMinorAndAddress) {
  for (const auto& [device, state] : devices()) {
    EXPECT_EQ(find_by_name(device->name.c_str()), device);
    EXPECT_EQ(find_by_minor(device->uverbs_minor), device);
  }
  for (const HostAddress& host : host_addresses()) {
    const Device* device = find_by_address(host.address);
    ASSERT_NE(device, nullptr) << host.interface;
    EXPECT_EQ(state_of(*device).interface, host.interface);
    EXPECT_TRUE(is_local_address(host.address)) << host.interface;
  }
}

TEST(Devices, WhatIsNotOursIsNotFound) {
  EXPECT_EQ(find_by_name("uiw_no_such_one"), nullptr);
  EXPECT_EQ(find_by_name(""), nullptr);
  EXPECT_EQ(find_by_name(nullptr), nullptr);
  EXPECT_EQ(find_by_minor(0), nullptr);
  EXPECT_TRUE(state_of(Device{}).addresses.empty());
  EXPECT_EQ(find_by_address(v4("203.0.113.77")), nullptr);
  EXPECT_EQ(find_by_address(v6("2001:db8:ffff::77")), nullptr);
  EXPECT_EQ(find_by_address(v4("0.0.0.0")), nullptr);
  EXPECT_EQ(find_by_address(v6("::")), nullptr);
  sockaddr_storage unix_socket{};
  unix_socket.ss_family = AF_UNIX;
  EXPECT_EQ(find_by_address(unix_socket), nullptr);
}

TEST(Devices, AllOfNet127IsLoopback) {
  ASSERT_NE(loopback(), nullptr);
  EXPECT_TRUE(state_of(*loopback()).active);
  EXPECT_EQ(find_by_address(v4("127.0.0.1")), loopback());
  EXPECT_EQ(find_by_address(v4("127.255.3.9")), loopback());
  EXPECT_EQ(find_by_address(v6("::1")), loopback());
  EXPECT_EQ(find_by_address(v6("::ffff:127.0.0.2")), loopback());
}

TEST(Devices, ScopeDecidesWhoseLinkLocalAddressItIs) {
  for (const HostAddress& host : host_addresses()) {
    auto in = reinterpret_cast<const sockaddr_in6&>(host.address);
    if (in.sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr)) continue;
    sockaddr_storage elsewhere = host.address;
    reinterpret_cast<sockaddr_in6&>(elsewhere).sin6_scope_id = 0x7ffffff0;
    EXPECT_EQ(find_by_address(elsewhere), nullptr);
  }
}

// For ThreadSanitizer, and for whoever forks meanwhile.
TEST(Devices, CanBeLookedAtWatchedAskedForAndForkedAtTheSameTime) {
  struct Ears final : Observer {
    void device_changed(const Device&, Change) override {}
  };
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  auto again_and_again = [&](auto call) {
    threads.emplace_back([&over, call] {
      while (!over) call();
    });
  };
  again_and_again([] { refresh(); });
  again_and_again([] {
    EXPECT_EQ(find_by_address(v4("127.0.0.1")), loopback());
    EXPECT_FALSE(state_of(*loopback()).gone);
    EXPECT_GT(version(), 0u);
  });
  again_and_again([] {
    Ears ears;
    subscribe(ears);
    unsubscribe(ears);
    unsubscribe(ears);
  });
  for (int i = 0; i < 20; ++i) {
    int fd = -1;
    ASSERT_EQ(start_watching(fd), 0);
    EXPECT_GE(fd, 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      refresh();
      _exit(loopback() != nullptr && !devices().empty() ? 0 : 1);
    }
    stop_watching();
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

// As where a container's seccomp profile forbids netlink.
TEST(Devices, StayWhereTheKernelDoesNotAnswer) {
  const size_t before = devices().size();
  ASSERT_GT(before, 0u);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit no_socket{};
    setrlimit(RLIMIT_NOFILE, &no_socket);
    refresh();
    int fd = -1;
    const bool refused = start_watching(fd) != 0;
    refresh();
    _exit(refused && devices().size() == before && loopback() != nullptr ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// What exit() calls last, after the destructors that name no priority.
bool looks_at_the_end = false;
__attribute__((destructor(101))) void at_the_end() {
  if (!looks_at_the_end) return;
  refresh();
  stop_watching();
  int fd = -1;
  _exit(start_watching(fd) == ECANCELED && loopback() != nullptr ? 0 : 1);
}

TEST(Devices, AreNotLookedAtOnceTheProcessEnds) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int fd = -1;
    if (start_watching(fd) != 0) _exit(2);
    looks_at_the_end = true;
    exit(3);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

#ifndef __SANITIZE_THREAD__  // which minds that the child of a handler looks by itself
// In a look-up, or while it looks.
TEST(Devices, ASignalHandlerMayFork) {
  const Device* const device = devices().front().device;
  int turn = 0;
  test::interrupted_by_forks(
      [&] {
        if (++turn % 100 == 0) refresh();
        for (int i = 0; i < 20; ++i) find_by_minor(device->uverbs_minor);
      },
      [&] { return find_by_minor(device->uverbs_minor) != nullptr ? 0 : 1; });
}
#endif

TEST(Route, LoopbackIsReachedFromLoopback) {
  sockaddr_storage source{};
  ASSERT_EQ(route_source(v4("127.0.0.1", 4791), source), 0);
  auto& in = reinterpret_cast<sockaddr_in&>(source);
  EXPECT_EQ(in.sin_family, AF_INET);
  EXPECT_EQ(in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(in.sin_port, 0);
}

TEST(Route, OtherLoopbackAddressesAreReachedFromTheInterfaces) {
  sockaddr_storage source{};
  ASSERT_EQ(route_source(v4("127.3.4.5", 4791), source), 0);
  EXPECT_EQ(reinterpret_cast<sockaddr_in&>(source).sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

TEST(Route, OwnAddressesAreReachedFromThemselves) {
  for (const HostAddress& host : host_addresses()) {
    sockaddr_storage source{};
    if (route_source(host.address, source) != 0) continue;  // a tentative IPv6 address
    in6_addr from, to;
    ASSERT_TRUE(core::address_of(source, from) && core::address_of(host.address, to));
    EXPECT_EQ(std::memcmp(&from, &to, sizeof to), 0) << host.interface;
  }
}

TEST(Route, ErrorsAreErrnos) {
  sockaddr_storage source{};
  sockaddr_storage unix_socket{};
  unix_socket.ss_family = AF_UNIX;
  EXPECT_EQ(route_source(unix_socket, source), EAFNOSUPPORT);
  EXPECT_NE(route_source(v4("255.255.255.255"), source), 0);
  EXPECT_EQ(route_source(v6("fe80::1"), source), EHOSTUNREACH);  // no scope
  EXPECT_EQ(source.ss_family, 0);
}

TEST(IsLocalAddress, TellsOthersApart) {
  EXPECT_TRUE(is_local_address(v4("127.0.0.1")));
  EXPECT_TRUE(is_local_address(v4("127.8.8.8")));
  EXPECT_FALSE(is_local_address(v4("0.0.0.0")));
  EXPECT_FALSE(is_local_address(v6("::")));
  EXPECT_FALSE(is_local_address(v4("203.0.113.77")));
  sockaddr_storage unix_socket{};
  unix_socket.ss_family = AF_UNIX;
  EXPECT_FALSE(is_local_address(unix_socket));
}

}  // namespace
}  // namespace uiw::device
