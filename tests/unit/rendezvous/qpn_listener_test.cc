// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whoever connects to the port of a queue pair without being its peer learns and changes nothing.
#include <gmock/gmock.h>

#include <functional>
#include <utility>

#include "core/gid.h"
#include "core/settings.h"
#include "device/gid_table.h"
#include "mpa/startup_frame.h"
#include "unit/rendezvous/qpn_listeners.h"

namespace uiw::rendezvous {
namespace {

TEST_F(QpnListeners, StrangersAreSentOffWithoutAnAnswer) {
  Party party(*engine);
  const Name peer = peer_of(party);
  ASSERT_EQ(party.search_peer(peer), 0);
  const HandshakeMessage right = hello(party);
  const auto from_to = [](const Name& from, const Name& to) {
    return octets_of(request({MessageType::kHello, Stage::kRts, from, to, {1, 0}}));
  };
  const std::pair<const char*, std::function<Octets()>> strangers[] = {
      {"another protocol", [] { return Octets{'G', 'E', 'T', ' ', '/', '\r', '\n'}; }},
      {"no handshake message",
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
         return from_to(peer, {party.name.gid, party.name.qp_num ^ 1});
       }},
      {"a number of another port",
       [&] {
         return from_to(peer, {party.name.gid, party.name.qp_num ^ 0x100});
       }},
      {"another peer",
       [&] {
         return from_to({peer.gid, peer.qp_num ^ 2}, party.name);
       }},
      {"another GID of ours",
       [&] {
         return from_to(peer, {in6addr_loopback, party.name.qp_num});
       }},
      {"an address that is not its own",
       [&] {
         return from_to({in6addr_loopback, peer.qp_num}, party.name);
       }},
      {"a message of the first version",
       [&] {
         mpa::StartupFrame frame = request(right);
         frame.private_data[4] = 1;
         frame.private_size = 48;
         return octets_of(frame);
       }},
      {"a proof before the challenge",
       [&] {
         HandshakeMessage says = right;
         says.type = MessageType::kProof;
         return octets_of(request(says));
       }},
      {"a message of the responder",
       [&] {
         HandshakeMessage says = right;
         says.type = MessageType::kOpening;
         return octets_of(request(says));
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

TEST_F(QpnListeners, EveryTruncationOfARequestGetsNoAnswer) {
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  const HandshakeMessage says = hello(party);
  const Octets whole = octets_of(request(says));
  for (size_t size = 0; size < whole.size(); size += 7) {
    RawPeer peer = call(party);
    ASSERT_TRUE(peer.send({whole.data(), size}));
    peer.finish();
    EXPECT_EQ(peer.receive_all(), Octets()) << size;
  }
  // And of the proof.
  for (size_t size = 0; size < whole.size(); size += 7) {
    RawPeer peer = call(party);
    const auto challenge = ask(peer, says);
    ASSERT_TRUE(challenge);
    HandshakeMessage proof = proof_behind(says, right_proof(says, *challenge));
    ASSERT_TRUE(peer.send({octets_of(request(proof)).data(), size}));
    peer.finish();
    EXPECT_EQ(peer.receive_all(), Octets()) << size;
  }
  EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
  expect_welcome(party);
}

TEST_F(QpnListeners, AWrongProofGetsNoAnswer) {
  testing::internal::CaptureStderr();
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  const HandshakeMessage says = hello(party);
  for (int bit = 0; bit < 64; ++bit) {
    RawPeer stranger = call(party);
    const auto challenge = ask(stranger, says);
    ASSERT_TRUE(challenge);
    ASSERT_TRUE(give(stranger, says, right_proof(says, *challenge) ^ uint64_t{1} << bit));
    EXPECT_EQ(stranger.receive_all(), Octets()) << bit;
  }
  // The right proof, and something else with it that was not in the hello.
  const std::pair<const char*, std::function<void(HandshakeMessage&)>> others[] = {
      {"another stage", [](HandshakeMessage& proof) { proof.stage = Stage::kRtr; }},
      {"another initiator", [](HandshakeMessage& proof) { proof.from.qp_num ^= 1; }},
      {"another queue pair", [](HandshakeMessage& proof) { proof.to.qp_num ^= 1; }},
      {"a second hello", [](HandshakeMessage& proof) { proof.type = MessageType::kHello; }},
      {"something behind it", [](HandshakeMessage& proof) { proof.value.second = 1; }},
  };
  for (const auto& [what, change] : others) {
    RawPeer stranger = call(party);
    const auto challenge = ask(stranger, says);
    ASSERT_TRUE(challenge);
    HandshakeMessage proof = proof_behind(says, right_proof(says, *challenge));
    change(proof);
    ASSERT_TRUE(stranger.send(octets_of(request(proof))));
    EXPECT_EQ(stranger.receive_all(), Octets()) << what;
  }
  EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
  expect_welcome(party);
  // Once, with the states of both.
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("127.0.0.1, in RTR: who comes as its peer"));
  EXPECT_THAT(said, testing::HasSubstr("127.0.0.1, in RTS, does not know the PSNs"));
  EXPECT_EQ(said.find("does not know"), said.rfind("does not know"));
}

// Neither one that was right for another challenge, nor one that the queue pair itself has said,
// nor one that would be right the other way round.
TEST_F(QpnListeners, WhatWasSaidBeforeProvesNothing) {
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  const HandshakeMessage says = hello(party);
  RawPeer first = call(party);
  const auto recorded = ask(first, says);
  ASSERT_TRUE(recorded);
  const auto proof_by = [&](const std::function<uint64_t(const HandshakeMessage&)>& proof) {
    RawPeer stranger = call(party);
    const auto challenge = ask(stranger, says);
    ASSERT_TRUE(challenge);
    EXPECT_NE(challenge->value.first, recorded->value.first);
    ASSERT_TRUE(give(stranger, says, proof(*challenge)));
    EXPECT_EQ(stranger.receive_all(), Octets());
  };
  proof_by([&](const HandshakeMessage&) { return right_proof(says, *recorded); });
  proof_by([&](const HandshakeMessage& challenge) { return challenge.value.first; });
  proof_by([&](const HandshakeMessage& challenge) {
    HandshakeMessage reversed = says;
    std::swap(reversed.from, reversed.to);
    return right_proof(reversed, challenge);
  });
  EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
  // The first, who has done nothing yet, is not too late.
  prove(first, says, *recorded);
}

// Who is in RTR knows one PSN; which one is asked for depends on both ends.
TEST_F(QpnListeners, WhoIsInRtrProvesTheOtherPsn) {
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  HandshakeMessage says = hello(party);
  says.stage = Stage::kRtr;
  RawPeer peer = call(party);
  ASSERT_TRUE(peer.send(octets_of(request(says))));
  RawPeer later = call(party);
  ASSERT_TRUE(ask(later, hello(party)));  // the engine has seen the other one: it waits
  EXPECT_EQ(recv(peer.fd(), nullptr, 0, MSG_DONTWAIT), -1);
  ASSERT_EQ(party.ready(), 0);
  const auto challenge = said_in_reply(peer, true);
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->stage, Stage::kRts);
  prove(peer, says, *challenge);
}

// A challenge of one search is not one of the next.
TEST_F(QpnListeners, AChallengeEndsWithItsSearch) {
  Party party(*engine), open(*engine);
  ASSERT_EQ(open.search_peer(peer_of(open)), 0);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  const HandshakeMessage says = hello(party);
  RawPeer peer = call(party);
  const auto challenge = ask(peer, says);
  ASSERT_TRUE(challenge);
  engine->run_sync([&] { party.search.reset(); });
  EXPECT_EQ(peer.receive_all(), Octets());
  expect_welcome(open);
}

TEST_F(QpnListeners, OneWhoComesTooSoonWaits) {
  Party early(*engine), open(*engine);
  ASSERT_EQ(port_of(early.name.qp_num), port_of(open.name.qp_num));
  ASSERT_EQ(open.search_peer(peer_of(open)), 0);  // opens the listener
  const HandshakeMessage says = hello(early);
  RawPeer peer = call(early);
  ASSERT_TRUE(peer.send(octets_of(request(says))));
  RawPeer wrong = call(early);
  ASSERT_TRUE(wrong.send(
      octets_of(request({MessageType::kHello, Stage::kRts, {loopback_gid(), 5}, early.name, {}}))));
  RawPeer gone = call(early);
  ASSERT_TRUE(gone.send(octets_of(request(says))));
  gone.close();
  expect_welcome(open);  // the engine has seen all of them by now
  ASSERT_EQ(early.search_peer(peer_of(early)), 0);
  EXPECT_EQ(wrong.receive_all(), Octets());
  const auto challenge = said_in_reply(peer, true);
  ASSERT_TRUE(challenge);
  prove(peer, says, *challenge);
}

// Whoever sends the right messages second, from the same host, is too late, and the first keeps its
// connection.
TEST_F(QpnListeners, ThePeerComesOnce) {
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  const HandshakeMessage says = hello(party);
  RawPeer first = call(party), second = call(party);
  const auto challenge = ask(second, says);
  ASSERT_TRUE(challenge);
  enter(first, party);
  ASSERT_TRUE(give(second, says, right_proof(says, *challenge)));
  EXPECT_EQ(second.receive_all(), Octets());
  RawPeer third = call(party);
  EXPECT_FALSE(ask(third, says));
  uint8_t octet;
  EXPECT_EQ(recv(first.fd(), &octet, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
}

// Run as test_rendezvous.timeouts, with short ones.
class QpnListenerTimeouts : public QpnListeners {
 protected:
  void SetUp() override {
    if (core::settings().reply_timeout_ms > 1000) GTEST_SKIP() << "the time-outs set are too long";
    QpnListeners::SetUp();
  }
};

TEST_F(QpnListenerTimeouts, WhoDoesNotSayWhoHeIsIsSentOff) {
  Party party(*engine);
  ASSERT_EQ(party.search_peer(peer_of(party)), 0);
  const Octets whole = octets_of(request(hello(party)));
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

TEST_F(QpnListenerTimeouts, WhoWaitsTooLongIsSentOff) {
  Party early(*engine), open(*engine);
  ASSERT_EQ(open.search_peer(peer_of(open)), 0);
  RawPeer peer = call(early);
  ASSERT_TRUE(peer.send(octets_of(request(hello(early)))));
  EXPECT_EQ(peer.receive_all(), Octets());
  ASSERT_EQ(early.search_peer(peer_of(early)), 0);
  expect_welcome(early);  // it comes again
}

// Others of this host's addresses stay closed, and to other processes, too.
TEST_F(QpnListeners, IsAtTheGidsOfItsQueuePairs) {
  const auto connects = [](const in6_addr& address, uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_storage to = core::socket_address_of(address, port, 0);
    const bool connected =
        connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)) == 0;
    EXPECT_TRUE(connected || errno == ECONNREFUSED) << strerror(errno);
    close(fd);
    return connected;
  };
  const auto can_be_had = [](const in6_addr& address, uint16_t port, int reuse) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_storage at = core::socket_address_of(address, port, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(sockaddr_in)) == 0;
    close(fd);
    return bound;
  };
  const in6_addr other = gid("::ffff:127.0.0.2"), third = gid("::ffff:127.0.0.3");
  Party one(*engine), two(*engine), three(*engine);
  const uint16_t port = port_of(one.name.qp_num);
  ASSERT_EQ(port, port_of(two.name.qp_num));
  ASSERT_EQ(one.search_peer(peer_of(one)), 0);
  EXPECT_TRUE(connects(loopback_gid(), port));
  EXPECT_FALSE(connects(other, port));
  two.name.gid = three.name.gid = other;
  for (Party* party : {&two, &three}) {
    ASSERT_EQ(party->search_peer({other, party->name.qp_num | 0xff0000}), 0);
    for (const in6_addr& address : {loopback_gid(), other}) EXPECT_TRUE(connects(address, port));
    EXPECT_FALSE(connects(third, port));
  }
  for (const in6_addr& address : {loopback_gid(), other, third}) {
    for (int option : {SO_REUSEADDR, SO_REUSEPORT}) EXPECT_FALSE(can_be_had(address, port, option));
  }
  expect_welcome(one);
}

TEST_F(QpnListeners, ClosesWithItsLastQueuePair) {
  auto party = std::make_unique<Party>(*engine);
  const uint16_t port = port_of(party->name.qp_num);
  ASSERT_EQ(party->search_peer(peer_of(*party)), 0);
  RawPeer waiting = call(*party), challenged = call(*party);
  ASSERT_TRUE(ask(challenged, hello(*party)));
  party.reset();
  EXPECT_EQ(challenged.receive_all(), Octets());
  bool reset = false;
  EXPECT_EQ(waiting.receive_all(&reset), Octets());
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_storage address = core::socket_address_of(loopback_gid(), port, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in)), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  close(fd);
}

}  // namespace
}  // namespace uiw::rendezvous
