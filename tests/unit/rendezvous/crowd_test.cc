// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Many who come to a listener at a time, whatever they know, do not keep the peer out.
#include "core/gid.h"
#include "device/gid_table.h"
#include "unit/rendezvous/qpn_listeners.h"

namespace uiw::rendezvous {
namespace {

TEST_F(QpnListeners, AFloodOfThoseWhoWaitIsCapped) {
  Party early(*engine), open(*engine);
  ASSERT_EQ(open.search_peer(peer_of(open)), 0);
  const HandshakeMessage says = hello(early);
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (int i = 0; i < 300; ++i) {
    flood.push_back(std::make_unique<RawPeer>(call(early)));
    ASSERT_TRUE(flood.back()->send(octets_of(request(says))));
  }
  // 256 wait at most: the first had to go, the last is there.
  EXPECT_EQ(flood.front()->receive_all(), Octets());
  expect_welcome(open);
  ASSERT_EQ(early.search_peer(peer_of(early)), 0);
  const auto challenge = said_in_reply(*flood.back(), true);
  ASSERT_TRUE(challenge);
  prove(*flood.back(), says, *challenge);
}

TEST_F(QpnListeners, AFloodLeavesRoomForThePeer) {
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (int i = 0; i < 400; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_storage address =
        core::socket_address_of(loopback_gid(), port_of(party.name.qp_num), 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in)) != 0) break;
    flood.push_back(std::make_unique<RawPeer>(fd));
  }
  expect_welcome(party);
  // The oldest made room.
  EXPECT_EQ(flood.front()->receive_all(), Octets());
}

// Strangers who say the right names and then nothing: challenges are not what keeps the peer out.
TEST_F(QpnListeners, GatheringChallengesLeavesRoomForThePeer) {
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  RawPeer peer = call(party);
  const HandshakeMessage says = hello(party);
  const auto challenge = ask(peer, says);
  ASSERT_TRUE(challenge);
  std::vector<std::unique_ptr<RawPeer>> flood;
  const auto comes = [&](bool asks) {
    flood.push_back(std::make_unique<RawPeer>(call(party)));
    if (asks) ASSERT_TRUE(ask(*flood.back(), says));
  };
  // Who has been challenged stays while those go who have not.
  for (int i = 0; i < 100; ++i) comes(true);
  for (int i = 0; i < 300; ++i) comes(false);
  uint8_t octet;
  EXPECT_EQ(flood[100]->receive_all(), Octets());
  EXPECT_EQ(recv(flood[0]->fd(), &octet, 1, MSG_DONTWAIT), -1);
  // But not more than half of all.
  for (int i = 0; i < 300; ++i) comes(true);
  EXPECT_EQ(flood[0]->receive_all(), Octets());
  expect_welcome(party);
}

// Guesses at the PSNs come slowly after a while, and the peer in between.
TEST_F(QpnListeners, GuessesAreBounded) {
  constexpr int kQuickly = 4096;
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  const HandshakeMessage says = hello(party);
  const auto guess = [&] {
    RawPeer stranger = call(party);
    const auto challenge = ask(stranger, says);
    if (!challenge) return false;
    EXPECT_TRUE(give(stranger, says, right_proof(says, *challenge) ^ 1));
    return true;
  };
  for (int i = 0; i < kQuickly; ++i) ASSERT_TRUE(guess()) << i;
  EXPECT_TRUE(wait_until([&] { return !guess(); }));
  std::optional<RawPeer> peer;
  std::optional<HandshakeMessage> challenge;
  ASSERT_TRUE(wait_until([&] {
    peer.emplace(call(party));
    challenge = ask(*peer, says);
    return challenge.has_value();
  }));
  prove(*peer, says, *challenge);
}

}  // namespace
}  // namespace uiw::rendezvous
