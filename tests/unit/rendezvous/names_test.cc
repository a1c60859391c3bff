// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Names of queue pairs, what they say over the wire, and the ports in their numbers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/gid.h"
#include "core/settings.h"
#include "device/gid_table.h"
#include "rendezvous/handshake_message.h"
#include "rendezvous/ports.h"
#include "support/gid.h"
#include "support/living_child.h"

namespace uiw::rendezvous {
namespace {

using test::gid;

TEST(Name, OrderedByGidThenNumber) {
  const Name low{gid("::ffff:10.0.0.1"), 9}, same_host{gid("::ffff:10.0.0.1"), 10},
      high{gid("fe80::1"), 1};
  EXPECT_LT(low, same_host);
  EXPECT_LT(same_host, high);
  EXPECT_GT(high, low);
  EXPECT_EQ(low, (Name{gid("::ffff:10.0.0.1"), 9}));
  EXPECT_NE(low, same_host);
}

TEST(Name, NumberIsPortAndIndex) {
  EXPECT_EQ(number_of(0xabcd, 0xef), 0xabcdefu);
  EXPECT_EQ(port_of(0xabcdef), 0xabcd);
  EXPECT_EQ(index_of(0xabcdef), 0xef);
}

TEST(Name, GidIsAnAddress) {
  const sockaddr_storage v4 = core::socket_address_of(gid("::ffff:192.0.2.7"), 80, 3);
  EXPECT_EQ(v4.ss_family, AF_INET);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(v4).sin_port, htons(80));
  EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(v4).sin_addr.s_addr, htonl(0xc0000207));
  const sockaddr_storage global = core::socket_address_of(gid("2001:db8::1"), 80, 3);
  EXPECT_EQ(global.ss_family, AF_INET6);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in6&>(global).sin6_scope_id, 0u);
  const sockaddr_storage link = core::socket_address_of(gid("fe80::1"), 80, 3);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in6&>(link).sin6_scope_id, 3u);
  for (const char* text : {"::ffff:192.0.2.7", "2001:db8::1", "fe80::1"}) {
    const in6_addr expected = gid(text),
                   there_and_back = core::gid_of(core::socket_address_of(expected, 1, 3));
    EXPECT_EQ(std::memcmp(&there_and_back, &expected, sizeof expected), 0) << text;
  }
}

TEST(Name, GidIsReadAsPeopleWriteAddresses) {
  EXPECT_STREQ(core::text_of(gid("::ffff:192.0.2.7")).text, "192.0.2.7");
  EXPECT_STREQ(core::text_of(gid("2001:db8::1")).text, "2001:db8::1");
}

TEST(HandshakeMessage, LaidOutAsDocumented) {
  const HandshakeMessage message{MessageType::kProof,
                                 Stage::kRts,
                                 {gid("::ffff:10.0.0.1"), 0x123456},
                                 {gid("2001:db8::9"), 0xabcdef},
                                 {0x0102030405060708, 0x090a0b0c0d0e0f10}};
  uint8_t octets[kHandshakeMessageSize];
  encode(octets, message);
  const uint8_t expected[] = {
      'U', 'I',  'W',  'M',  2,    3,    2, 0,  //
      0,   0x12, 0x34, 0x56, 0,    0,    0, 0,    0,    0, 0, 0,  0,  0,  0xff, 0xff, 10, 0, 0,
      1,   0,    0xab, 0xcd, 0xef, 0x20, 1, 0x0d, 0xb8, 0, 0, 0,  0,  0,  0,    0,    0,  0, 0,
      0,   9,    1,    2,    3,    4,    5, 6,    7,    8, 9, 10, 11, 12, 13,   14,   15, 16};
  static_assert(sizeof expected == kHandshakeMessageSize);
  EXPECT_EQ(std::memcmp(octets, expected, sizeof expected), 0);
  EXPECT_EQ(decode_handshake_message(octets), message);
  // Reliable service is what all had once.
  HandshakeMessage unreliable = message;
  unreliable.service = core::Service::kUnreliable;
  encode(octets, unreliable);
  EXPECT_EQ(octets[7], 1);
  EXPECT_EQ(decode_handshake_message(octets), unreliable);
  octets[7] = 0;
  EXPECT_EQ(std::memcmp(octets, expected, sizeof expected), 0);
}

TEST(HandshakeMessage, RefusesEveryOtherSizeKeyVersionWordStageServiceAndNumber) {
  uint8_t octets[kHandshakeMessageSize + 1] = {};
  encode(octets, {MessageType::kOpening, Stage::kRts, {gid("::1"), 1}, {gid("::1"), 2}, {}});
  for (size_t size = 0; size <= sizeof octets; ++size)
    EXPECT_EQ(decode_handshake_message({octets, size}).has_value(), size == kHandshakeMessageSize)
        << size;
  for (size_t at = 0; at < 8; ++at) {
    octets[at] ^= 0x10;
    EXPECT_FALSE(decode_handshake_message({octets, kHandshakeMessageSize})) << at;
    EXPECT_EQ(is_of_another_version({octets, kHandshakeMessageSize}), at == 4) << at;
    octets[at] ^= 0x10;
  }
  for (const auto& [at, good] : {std::pair{5, 4}, {6, 2}}) {
    for (int value = 0; value < 256; ++value) {
      octets[at] = static_cast<uint8_t>(value);
      EXPECT_EQ(decode_handshake_message({octets, kHandshakeMessageSize}).has_value(),
                value >= 1 && value <= good);
    }
    octets[at] = 1;
  }
  for (int value = 0; value < 256; ++value) {
    octets[7] = static_cast<uint8_t>(value);
    EXPECT_EQ(decode_handshake_message({octets, kHandshakeMessageSize}).has_value(), value <= 1);
  }
  octets[7] = 0;
  for (size_t top : {8u, 28u}) {
    octets[top] = 1;
    EXPECT_FALSE(decode_handshake_message({octets, kHandshakeMessageSize}));
    octets[top] = 0;
  }
  for (size_t size = 0; size < 8; ++size)
    EXPECT_FALSE(is_of_another_version({octets, size})) << size;
}

// Of a TCP socket of its own. 0 or errno.
int call_with(int (*call)(int, const sockaddr*, socklen_t), const char* host, uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_storage address = core::socket_address_of(gid(host), port, 0);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  const int error = call(fd, generic, sizeof(sockaddr_in)) == 0 ? 0 : errno;
  close(fd);
  return error;
}

int connect_to(uint16_t port) {
  return call_with(connect, "::ffff:127.0.0.1", port);
}

// Everywhere.
int bind_to(uint16_t port) {
  return call_with(bind, "::ffff:0.0.0.0", port);
}

TEST(Ports, NumbersDifferAndTheirPortIsHeldButClosed) {
  std::set<uint32_t> numbers;
  for (uint32_t i = 0; i < kNumbersPerPort + 1; ++i) {
    core::Result<uint32_t> number = take_number();
    ASSERT_TRUE(number) << strerror(number.error());
    EXPECT_TRUE(numbers.insert(*number).second);
    EXPECT_TRUE(number_in_use(*number));
    EXPECT_EQ(*number >> 24, 0u);
  }
  std::set<uint16_t> ports;
  for (uint32_t number : numbers) ports.insert(port_of(number));
  EXPECT_EQ(ports.size(), 2u);
  for (uint16_t port : ports) {
    EXPECT_EQ(connect_to(port), ECONNREFUSED);
    EXPECT_EQ(bind_to(port), EADDRINUSE);
  }
  for (uint32_t number : numbers) give_number(number);
  for (uint32_t number : numbers) EXPECT_FALSE(number_in_use(number));
  give_number(*numbers.begin());  // not ours any more: nothing happens
  close_idle_ports();
  for (uint16_t port : ports) EXPECT_EQ(bind_to(port), 0);
}

TEST(Ports, AreFreeBesideAChildThatLivesOn) {
  core::Result<uint32_t> number = take_number();
  ASSERT_TRUE(number);
  const test::LivingChild child;
  EXPECT_EQ(bind_to(port_of(*number)), EADDRINUSE);
  give_number(*number);
  close_idle_ports();
  EXPECT_EQ(bind_to(port_of(*number)), 0);
}

// Who has seen many numbers does not know the next; and none comes again soon.
TEST(Ports, NumbersAreNotForeseenAndNotReusedSoon) {
  constexpr size_t kLate = kNumbersPerPort / 2;
  core::Result<uint32_t> kept = take_number();
  ASSERT_TRUE(kept);
  std::vector<uint32_t> drawn;
  int neighbours = 0;
  for (uint32_t i = 0; i < 4 * kNumbersPerPort; ++i) {
    core::Result<uint32_t> number = take_number();
    ASSERT_TRUE(number);
    EXPECT_EQ(port_of(*number), port_of(*kept));
    EXPECT_NE(*number, *kept);
    const auto lately = drawn.end() - static_cast<long>(std::min(drawn.size(), kLate - 1));
    EXPECT_EQ(std::find(lately, drawn.end(), *number), drawn.end());
    neighbours += !drawn.empty() && *number == drawn.back() + 1;
    drawn.push_back(*number);
    give_number(*number);
  }
  // Four to eight is what chance brings; a counter has a thousand.
  EXPECT_LT(neighbours, 100);
  // Nearly all of them come.
  EXPECT_GT(std::set<uint32_t>(drawn.begin(), drawn.end()).size(), 230u);
  give_number(*kept);
  close_idle_ports();
}

// Run a second time with a range of two ports.
TEST(Ports, StayInTheRangeThatIsSet) {
  const uint32_t first = core::settings().first_port, last = core::settings().last_port;
  const size_t room = first == 0 ? 3 * kNumbersPerPort : (last - first + 1) * kNumbersPerPort;
  std::vector<uint32_t> numbers;
  while (numbers.size() < room) {
    core::Result<uint32_t> number = take_number();
    ASSERT_TRUE(number) << strerror(number.error());
    numbers.push_back(*number);
    EXPECT_GE(port_of(*number), first == 0 ? 1024u : first);
    EXPECT_LE(port_of(*number), first == 0 ? 65535u : last);
  }
  if (first != 0) EXPECT_EQ(take_number().error(), EADDRINUSE);
  for (uint32_t number : numbers) give_number(number);
  close_idle_ports();
}

}  // namespace
}  // namespace uiw::rendezvous
