// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Against the interfaces of the machine the test runs on, compared with getifaddrs().
#include "device/device.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "device/interface.h"

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

TEST(Devices, AreTheSameSpanForEveryThread) {
  const Device* seen[4] = {};
  {
    std::vector<std::thread> threads;
    for (const Device*& slot : seen) threads.emplace_back([&slot] { slot = devices().data(); });
    for (std::thread& thread : threads) thread.join();
  }
  for (const Device* data : seen) EXPECT_EQ(data, devices().data());
}

TEST(Devices, EveryInterfaceWithAnAddressIsThere) {
  std::set<std::string> wanted, got;
  for (const HostAddress& host : host_addresses()) wanted.insert("uiw_" + host.interface);
  for (const Device& device : devices()) {
    got.insert(device.name);
    EXPECT_EQ(device.name, "uiw_" + device.interface);
    EXPECT_FALSE(device.gids.empty());
    EXPECT_NE(device.node_guid, 0u);
    EXPECT_GT(device.mtu, 0u);
  }
  EXPECT_EQ(got, wanted);
}

TEST(Devices, AreFoundByNameGuidAndAddress) {
  for (const Device& device : devices()) {
    EXPECT_EQ(find_by_name(device.name.c_str()), &device);
    EXPECT_EQ(find_by_guid(device.node_guid), &device);
  }
  for (const HostAddress& host : host_addresses()) {
    const Device* device = find_by_address(host.address);
    ASSERT_NE(device, nullptr) << host.interface;
    EXPECT_EQ(device->interface, host.interface);
    EXPECT_TRUE(is_local_address(host.address)) << host.interface;
  }
}

TEST(Devices, WhatIsNotOursIsNotFound) {
  EXPECT_EQ(find_by_name("uiw_no_such_one"), nullptr);
  EXPECT_EQ(find_by_name(""), nullptr);
  EXPECT_EQ(find_by_name(nullptr), nullptr);
  EXPECT_EQ(find_by_guid(0), nullptr);
  EXPECT_EQ(find_by_address(v4("203.0.113.77")), nullptr);
  EXPECT_EQ(find_by_address(v6("2001:db8:ffff::77")), nullptr);
  EXPECT_EQ(find_by_address(v4("0.0.0.0")), nullptr);
  sockaddr_storage unix_socket{};
  unix_socket.ss_family = AF_UNIX;
  EXPECT_EQ(find_by_address(unix_socket), nullptr);
}

TEST(Devices, AllOfNet127IsLoopback) {
  ASSERT_NE(loopback(), nullptr);
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

TEST(Route, LoopbackIsReachedFromLoopback) {
  sockaddr_storage source{};
  ASSERT_EQ(route_source(v4("127.0.0.1", 4791), source), 0);
  auto& in = reinterpret_cast<sockaddr_in&>(source);
  EXPECT_EQ(in.sin_family, AF_INET);
  EXPECT_EQ(in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(in.sin_port, 0);
}

TEST(Route, OwnAddressesAreReachedFromThemselves) {
  for (const HostAddress& host : host_addresses()) {
    sockaddr_storage source{};
    if (route_source(host.address, source) != 0) continue;  // a tentative IPv6 address
    in6_addr from, to;
    ASSERT_TRUE(address_of(source, from) && address_of(host.address, to));
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
