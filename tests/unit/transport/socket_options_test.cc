// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/socket_options.h"
#include "transport/addresses.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "unit/transport/support.h"

namespace uiw::transport {
namespace {

sockaddr_storage address(const char* text) {
  sockaddr_storage result{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(result);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(result);
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
    v6.sin6_family = AF_INET6;
  }
  return result;
}

TEST(SocketOptions, LengthFollowsTheFamily) {
  EXPECT_EQ(length_of(address("10.0.0.1")), sizeof(sockaddr_in));
  EXPECT_EQ(length_of(address("fe80::1")), sizeof(sockaddr_in6));
  EXPECT_EQ(length_of(sockaddr_storage{}), 0u);
}

TEST(SocketOptions, KnowsLoopback) {
  for (const char* text : {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(address(text))) << text;
  }
  for (const char* text :
       {"128.0.0.1", "126.255.255.255", "0.0.0.0", "::", "::2", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(is_loopback(address(text))) << text;
  }
  EXPECT_FALSE(is_loopback(sockaddr_storage{}));
}

TEST(SocketOptions, APeerIsLocalByItsAddress) {
  const sockaddr_storage other = address("198.51.100.7");
  EXPECT_TRUE(is_local_peer(address("127.0.0.1"), other));
  EXPECT_TRUE(is_local_peer(address("::1"), address("::1")));
  // Its own other end has the same address, whatever that is.
  EXPECT_TRUE(is_local_peer(address("198.51.100.7"), other));
  EXPECT_TRUE(is_local_peer(address("2001:db8::7"), address("2001:db8::7")));
  // Reserved for documentation: on no host.
  EXPECT_FALSE(is_local_peer(address("192.0.2.55"), other));
  EXPECT_FALSE(is_local_peer(address("2001:db8::99"), address("2001:db8::7")));
  EXPECT_FALSE(is_local_peer(address("::ffff:192.0.2.55"), address("::1")));
  EXPECT_FALSE(is_local_peer(sockaddr_storage{}, other));
}

TEST(SocketOptions, WhatIsAcceptedFromElsewhereIsLeftToTheHost) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const std::string hosts = test::algorithm_of(fd);
  const CongestionControl choice = begin_with_reno(fd);
  EXPECT_EQ(test::algorithm_of(fd), "reno");
  EXPECT_EQ(choice.name, hosts == "reno" ? "" : hosts);
  leave_to_host(fd, test::loopback(), choice);
  EXPECT_EQ(test::algorithm_of(fd), "reno");
  leave_to_host(fd, address("192.0.2.55"), choice);
  EXPECT_EQ(test::algorithm_of(fd), hosts);
  close(fd);
}

TEST(SocketOptions, TunesForLocalPeers) {
  for (unsigned connections : {1u, 3u, 4u, 4000u}) {
    SCOPED_TRACE(connections);
    const int tuned = socket(AF_INET, SOCK_STREAM, 0);
    const int plain = socket(AF_INET, SOCK_STREAM, 0);
    tune_for_local_peer(tuned, connections);
    EXPECT_EQ(test::algorithm_of(tuned), "reno");
    for (const auto& [option, most] : {std::pair(SO_SNDBUF, 768 << 10), {SO_RCVBUF, 512 << 10}}) {
      // Where the host allows less, nothing is asked for.
      const int untouched = test::buffer_of(plain, option);
      setsockopt(plain, SOL_SOCKET, option, &most, sizeof most);
      const int allowed = test::buffer_of(plain, option);
      const int wanted = connections <= 3 ? allowed : 2 * (256 << 10);
      EXPECT_EQ(test::buffer_of(tuned, option), allowed == 2 * most ? wanted : untouched);
    }
    close(tuned);
    close(plain);
  }
}

}  // namespace
}  // namespace uiw::transport
