// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whoever connects to the port of a queue pair without being its peer learns and changes nothing.
#include <algorithm>
#include <functional>

#include "core/settings.h"
#include "mpa/startup_frame.h"
#include "unit/rendezvous/party.h"

namespace uiw::rendezvous {
namespace {

class Doors : public OnEngine {
 protected:
  // A peer that is greater than ours, so that ours waits at its door; no queue pair, just a name.
  static Name peer_of(const Party& party) { return {loopback_gid(), party.name.qp_num | 0xff0000}; }
  static RawPeer call(const Party& party) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_storage door = address_of(loopback_gid(), port_of(party.name.qp_num), 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&door), sizeof(sockaddr_in)), 0)
        << strerror(errno);
    return RawPeer(fd);
  }
  static mpa::StartupFrame request(const Greeting& greeting) {
    mpa::StartupFrame frame;
    frame.enhanced = mpa::Enhanced{.peer_to_peer = true, .rtr_write = true, .ird = 1, .ord = 1};
    frame.private_size = kGreetingSize;
    encode(frame.private_data, greeting);
    return frame;
  }
  static Octets octets_of(const mpa::StartupFrame& frame) {
    Octets octets(mpa::kMaxStartupFrame);
    octets.resize(mpa::encode(octets.data(), frame));
    return octets;
  }
  // The right peer's answer comes: nothing that was before has done any harm.
  static void expect_welcome(Party& party) {
    RawPeer peer = call(party);
    ASSERT_TRUE(peer.send(octets_of(request({peer_of(party), party.name}))));
    const Octets reply =
        peer.receive(mpa::kStartupHeaderSize + mpa::kEnhancedBlockSize + kGreetingSize);
    mpa::StartupFrame frame;
    uint32_t consumed = 0;
    ASSERT_EQ(mpa::parse(reply, mpa::FrameKind::kReply, frame, consumed),
              mpa::ParseStatus::kComplete);
    EXPECT_FALSE(frame.reject);
    EXPECT_EQ(decode_greeting({frame.private_data, frame.private_size}),
              (Greeting{party.name, peer_of(party)}));
  }
};

TEST_F(Doors, StrangersAreSentOffWithoutAWord) {
  Party party(*engine);
  const Name peer = peer_of(party);
  ASSERT_EQ(party.meet(peer), 0);
  const Greeting right{peer, party.name};
  const std::pair<const char*, std::function<Octets()>> strangers[] = {
      {"another protocol", [] { return Octets{'G', 'E', 'T', ' ', '/', '\r', '\n'}; }},
      {"no greeting",
       [&] {
         mpa::StartupFrame frame = request(right);
         frame.private_size = 0;
         return octets_of(frame);
       }},
      {"revision 1",
       [&] {
         mpa::StartupFrame frame = request(right);
         frame.revision = 1;
         frame.enhanced.reset();
         return octets_of(frame);
       }},
      {"markers",
       [&] {
         mpa::StartupFrame frame = request(right);
         frame.markers = true;
         return octets_of(frame);
       }},
      {"a Reply",
       [&] {
         mpa::StartupFrame frame = request(right);
         frame.kind = mpa::FrameKind::kReply;
         return octets_of(frame);
       }},
      {"octets behind the Request",
       [&] {
         Octets octets = octets_of(request(right));
         octets.push_back(0);
         return octets;
       }},
      {"a number nobody has",
       [&] {
         return octets_of(request({peer, {party.name.gid, party.name.qp_num ^ 1}}));
       }},
      {"a number of another port",
       [&] {
         return octets_of(request({peer, {party.name.gid, party.name.qp_num ^ 0x100}}));
       }},
      {"another peer",
       [&] {
         return octets_of(request({{peer.gid, peer.qp_num ^ 2}, party.name}));
       }},
      {"another GID of ours",
       [&] {
         return octets_of(request({peer, {in6addr_loopback, party.name.qp_num}}));
       }},
      {"an address that is not his",
       [&] {
         return octets_of(request({{in6addr_loopback, peer.qp_num}, party.name}));
       }},
  };
  for (const auto& [what, says] : strangers) {
    SCOPED_TRACE(what);
    RawPeer stranger = call(party);
    ASSERT_TRUE(stranger.send(says()));
    EXPECT_EQ(stranger.receive_all(), Octets());
    EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
  }
  expect_welcome(party);
}

TEST_F(Doors, EveryTruncationOfARequestGetsNoAnswer) {
  Party party(*engine);
  ASSERT_EQ(party.meet(peer_of(party)), 0);
  const Octets whole = octets_of(request({peer_of(party), party.name}));
  for (size_t size = 0; size < whole.size(); size += 7) {
    RawPeer peer = call(party);
    ASSERT_TRUE(peer.send({whole.data(), size}));
    peer.finish();
    EXPECT_EQ(peer.receive_all(), Octets()) << size;
  }
  expect_welcome(party);
}

TEST_F(Doors, OneWhoComesTooSoonWaits) {
  Party early(*engine), open(*engine);
  ASSERT_EQ(port_of(early.name.qp_num), port_of(open.name.qp_num));
  ASSERT_EQ(open.meet(peer_of(open)), 0);  // opens the door
  RawPeer peer = call(early);
  ASSERT_TRUE(peer.send(octets_of(request({peer_of(early), early.name}))));
  RawPeer wrong = call(early);
  ASSERT_TRUE(wrong.send(octets_of(request({{loopback_gid(), 5}, early.name}))));
  RawPeer gone = call(early);
  ASSERT_TRUE(gone.send(octets_of(request({peer_of(early), early.name}))));
  gone.close();
  expect_welcome(open);  // the engine has seen all of them by now
  ASSERT_EQ(early.meet(peer_of(early)), 0);
  EXPECT_EQ(wrong.receive_all(), Octets());
  EXPECT_EQ(peer.receive(4), (Octets{'M', 'P', 'A', ' '}));
}

// Whoever says the right words second, from the same host, is too late, and the first keeps what he
// has.
TEST_F(Doors, ThePeerComesOnce) {
  Party party(*engine);
  ASSERT_EQ(party.meet(peer_of(party)), 0);
  const Octets says = octets_of(request({peer_of(party), party.name}));
  RawPeer first = call(party);
  ASSERT_TRUE(first.send(says));
  EXPECT_FALSE(
      first.receive(mpa::kStartupHeaderSize + mpa::kEnhancedBlockSize + kGreetingSize).empty());
  RawPeer second = call(party);
  ASSERT_TRUE(second.send(says));
  EXPECT_EQ(second.receive_all(), Octets());
  uint8_t octet;
  EXPECT_EQ(recv(first.fd(), &octet, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
}

TEST_F(Doors, AFloodOfThoseWhoWaitIsCapped) {
  Party early(*engine), open(*engine);
  ASSERT_EQ(open.meet(peer_of(open)), 0);
  const Octets says = octets_of(request({peer_of(early), early.name}));
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (int i = 0; i < 300; ++i) {
    flood.push_back(std::make_unique<RawPeer>(call(early)));
    ASSERT_TRUE(flood.back()->send(says));
  }
  // 256 wait at most: the first had to go, the last is there.
  EXPECT_EQ(flood.front()->receive_all(), Octets());
  expect_welcome(open);
  ASSERT_EQ(early.meet(peer_of(early)), 0);
  const auto welcomed = [](const auto& peer) { return !peer->receive(4).empty(); };
  EXPECT_EQ(std::ranges::count_if(flood, welcomed), 1);
}

TEST_F(Doors, AFloodLeavesRoomForThePeer) {
  Party party(*engine);
  ASSERT_EQ(party.meet(peer_of(party)), 0);
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (int i = 0; i < 400; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_storage door = address_of(loopback_gid(), port_of(party.name.qp_num), 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&door), sizeof(sockaddr_in)) != 0) break;
    flood.push_back(std::make_unique<RawPeer>(fd));
  }
  expect_welcome(party);
  // The oldest made room.
  EXPECT_EQ(flood.front()->receive_all(), Octets());
}

// Run as test_rendezvous.timeouts, with short ones.
class DoorTimeouts : public Doors {
 protected:
  void SetUp() override {
    if (core::settings().reply_timeout_ms > 1000) GTEST_SKIP() << "the time-outs set are too long";
    Doors::SetUp();
  }
};

TEST_F(DoorTimeouts, WhoDoesNotSayWhoHeIsIsSentOff) {
  Party party(*engine);
  ASSERT_EQ(party.meet(peer_of(party)), 0);
  const Octets whole = octets_of(request({peer_of(party), party.name}));
  RawPeer silent = call(party), half = call(party), dribbling = call(party);
  ASSERT_TRUE(half.send({whole.data(), whole.size() / 2}));
  // An octet now and then does not win time: far more time than there is would be needed for all.
  for (const uint8_t octet : whole) {
    if (!dribbling.send({&octet, 1})) break;
    usleep(core::settings().request_timeout_ms * 1000 / 10);
  }
  EXPECT_EQ(dribbling.receive_all(), Octets());
  EXPECT_EQ(silent.receive_all(), Octets());
  EXPECT_EQ(half.receive_all(), Octets());
  EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
  expect_welcome(party);
}

TEST_F(DoorTimeouts, WhoWaitsTooLongIsSentOff) {
  Party early(*engine), open(*engine);
  ASSERT_EQ(open.meet(peer_of(open)), 0);
  RawPeer peer = call(early);
  ASSERT_TRUE(peer.send(octets_of(request({peer_of(early), early.name}))));
  EXPECT_EQ(peer.receive_all(), Octets());
  ASSERT_EQ(early.meet(peer_of(early)), 0);
  expect_welcome(early);  // he comes again
}

TEST_F(Doors, ClosesWithItsLastQueuePair) {
  auto party = std::make_unique<Party>(*engine);
  const uint16_t port = port_of(party->name.qp_num);
  ASSERT_EQ(party->meet(peer_of(*party)), 0);
  RawPeer waiting = call(*party);
  party.reset();
  bool reset = false;
  EXPECT_EQ(waiting.receive_all(&reset), Octets());
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_storage door = address_of(loopback_gid(), port, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&door), sizeof(sockaddr_in)), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  close(fd);
}

}  // namespace
}  // namespace uiw::rendezvous
