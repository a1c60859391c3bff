// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whoever holds the port that a queue pair connects to, without being its peer, is not taken for
// it.
#include <gmock/gmock.h>
#include <poll.h>

#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "core/gid.h"
#include "core/settings.h"
#include "device/gid_table.h"
#include "mpa/startup_frame.h"
#include "rendezvous/wishes.h"
#include "unit/rendezvous/party.h"

namespace uiw::rendezvous {
namespace {

class PeerConnectors : public OnEngine {
 protected:
  PeerConnectors() {
    sockaddr_storage address = core::socket_address_of(loopback_gid(), 0, 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    peer = {
        loopback_gid(),
        static_cast<uint32_t>(ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port)) << 8 | 3};
  }
  ~PeerConnectors() override { close(listener_); }

  // The next connection, and its hello.
  RawPeer answer(const Party& party, HandshakeMessage& hello) {
    RawPeer connection(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    hello = said_in_request(connection);
    EXPECT_EQ(hello.type, MessageType::kHello);
    EXPECT_EQ(hello.from, party.name);
    EXPECT_EQ(hello.to, peer);
    EXPECT_EQ(hello.value.second, 0u);
    return connection;
  }
  HandshakeMessage said_in_request(RawPeer& connection) {
    const Octets octets = connection.receive(kFrameSize);
    uint32_t consumed = 0;
    EXPECT_EQ(mpa::parse(octets, mpa::FrameKind::kRequest, request_, consumed),
              mpa::ParseStatus::kComplete);
    const auto said = decode_handshake_message({request_.private_data, request_.private_size});
    EXPECT_TRUE(said);
    return said.value_or(HandshakeMessage{});
  }
  bool nobody_connects() {
    pollfd waiting{listener_, POLLIN, 0};
    return poll(&waiting, 1, 0) == 0;
  }

  mpa::StartupFrame reply(const HandshakeMessage& message) {
    mpa::Agreement agreement;
    mpa::StartupFrame frame = message.type == MessageType::kChallenge
                                  ? mpa::make_reject(wishes(true, 1), request_)
                                  : mpa::make_reply(wishes(true, 1), request_, agreement);
    frame.private_size = kHandshakeMessageSize;
    encode(frame.private_data, message);
    return frame;
  }
  // What the peer says to this hello, and to the proof that follows.
  HandshakeMessage challenge(const HandshakeMessage& hello, Stage stage = Stage::kRts) {
    return {MessageType::kChallenge, stage, peer, hello.from, {commitment(hello, stage), 0}};
  }
  uint64_t commitment(const HandshakeMessage& hello, Stage stage) {
    return commitment_of(transcript(hello, stage), secret(hello, stage), kOpening);
  }
  HandshakeMessage opening(const HandshakeMessage& hello, Stage stage = Stage::kRts) {
    return {MessageType::kOpening, stage, peer, hello.from, kOpening};
  }
  Transcript transcript(const HandshakeMessage& hello, Stage stage) {
    return {hello.from, peer, hello.stage, stage, hello.value.first};
  }
  uint64_t secret(const HandshakeMessage& hello, Stage stage) {
    Psns psns{psn_of(hello.from), {}};
    if (stage == Stage::kRts) psns.send = psn_of(peer);
    return secret_of_responder(psns, hello.stage).value_or(0);
  }
  // Challenges, and takes the proof.
  void challenge_and_check(RawPeer& connection, const HandshakeMessage& hello,
                           Stage stage = Stage::kRts) {
    ASSERT_TRUE(connection.send(octets_of(reply(challenge(hello, stage)))));
    HandshakeMessage expected = hello;
    expected.type = MessageType::kProof;
    expected.value = {
        proof_of(transcript(hello, stage), secret(hello, stage), commitment(hello, stage)), 0};
    EXPECT_EQ(said_in_request(connection), expected);
  }

  static constexpr core::SipKey kOpening{3, 4};
  Name peer;
  mpa::StartupFrame request_;  // the last

 private:
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST_F(PeerConnectors, OnlyThePeersAnswerCounts) {
  Party party(*engine);
  // The greater of the two names, which connects.
  party.name.gid = gid("::ffff:127.0.0.2");
  ASSERT_LT(peer, party.name);
  ASSERT_EQ(party.search_peer(peer), 0);
  ASSERT_EQ(party.ready(), 0);
  const auto with = [&](const std::function<void(HandshakeMessage&)>& change) {
    return [&, change](const HandshakeMessage& hello) {
      HandshakeMessage says = challenge(hello);
      change(says);
      return octets_of(reply(says));
    };
  };
  const std::pair<const char*, std::function<Octets(const HandshakeMessage&)>> answers[] = {
      {"another protocol",
       [](const HandshakeMessage&) { return of_text("HTTP/1.1 400 Bad Request\r\n\r\n"); }},
      {"a neighbour of the peer", with([](HandshakeMessage& says) { says.from.qp_num ^= 1; })},
      {"the peer of a neighbour", with([](HandshakeMessage& says) { says.to.qp_num ^= 1; })},
      {"our own message", with([](HandshakeMessage& says) { std::swap(says.from, says.to); })},
      {"no handshake message",
       [&](const HandshakeMessage& hello) {
         Octets octets = octets_of(reply(challenge(hello)));
         octets[mpa::kStartupHeaderSize + mpa::kEnhancedBlockSize] ^= 1;
         return octets;
       }},
      {"a refusal", with([](HandshakeMessage& says) { says.type = MessageType::kHello; })},
      {"acceptance without a proof",
       [&](const HandshakeMessage& hello) { return octets_of(reply(opening(hello))); }},
      {"acceptance with a challenge",
       [&](const HandshakeMessage& hello) {
         Octets octets = octets_of(reply(challenge(hello)));
         octets[16] &= static_cast<uint8_t>(~0x20);
         return octets;
       }},
      {"more than a challenge",
       [&](const HandshakeMessage& hello) {
         Octets octets = octets_of(reply(challenge(hello)));
         octets.push_back(0);
         return octets;
       }},
      {"half an answer",  // the last: nothing of it may be in the next
       [&](const HandshakeMessage& hello) {
         Octets octets = octets_of(reply(challenge(hello)));
         octets.resize(octets.size() / 2);
         return octets;
       }},
  };
  HandshakeMessage hello;
  std::set<uint64_t> nonces;
  for (const auto& [what, says] : answers) {
    SCOPED_TRACE(what);
    // One that was still in RTR when it connected closes, and connects anew.
    std::optional<RawPeer> connection;
    do {
      connection.emplace(answer(party, hello));
    } while (hello.stage == Stage::kRtr);
    EXPECT_TRUE(nonces.insert(hello.value.first).second);
    ASSERT_TRUE(connection->send(says(hello)));
    connection->finish();
    EXPECT_EQ(connection->receive_all(), Octets());  // no proof
  }
  RawPeer connection = answer(party, hello);
  challenge_and_check(connection, hello);
  ASSERT_TRUE(connection.send(octets_of(reply(opening(hello)))));
  // An RTR: the queue pair has the stream.
  EXPECT_FALSE(connection.receive(20).empty());
}

// A responder that got the proof without having known the PSNs gets no data, and no second attempt.
TEST_F(PeerConnectors, NoMoreAttemptsAfterACommitmentThatIsNotOpened) {
  const std::pair<const char*, std::function<void(PeerConnectors&, Octets&)>> answers[] = {
      {"one bit of the opening",
       [](PeerConnectors&, Octets& octets) { octets[kFrameSize - 1] ^= 1; }},
      {"another bit of it",
       [](PeerConnectors&, Octets& octets) { octets[kFrameSize - 16] ^= 0x80; }},
      {"another stage",
       [](PeerConnectors&, Octets& octets) { octets[kFrameSize - kHandshakeMessageSize + 6] = 1; }},
      {"another name",
       [](PeerConnectors&, Octets& octets) {
         octets[kFrameSize - kHandshakeMessageSize + 11] ^= 1;
       }},
      {"a refusal", [](PeerConnectors&, Octets& octets) { octets[16] |= 0x20; }},
      {"half an answer", [](PeerConnectors&, Octets& octets) { octets.resize(octets.size() / 2); }},
      {"no answer", [](PeerConnectors&, Octets& octets) { octets.clear(); }},
  };
  for (const auto& [what, change] : answers) {
    SCOPED_TRACE(what);
    Party party(*engine);
    party.name.gid = gid("::ffff:127.0.0.2");
    testing::internal::CaptureStderr();
    HandshakeMessage hello;
    ASSERT_EQ(party.search_peer(peer), 0);
    std::optional<RawPeer> connection(answer(party, hello));
    // In RTR: the PSN that the peer sends with is what can be proven.
    challenge_and_check(*connection, hello);
    Octets octets = octets_of(reply(opening(hello)));
    change(*this, octets);
    ASSERT_TRUE(connection->send(octets));
    connection->finish();
    EXPECT_EQ(connection->receive_all(), Octets());
    Buffer memory(party.host.memory, pattern(10));
    ASSERT_EQ(party.ready(core::kMillisecond), 0);
    ASSERT_EQ(party.host.post(SendWr(IBV_WR_SEND, {memory.sge()})), 0);
    ASSERT_TRUE(party.wait_for_sent(1));
    EXPECT_EQ(party.host.sent()[0].status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(nobody_connects());
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, testing::HasSubstr("127.0.0.2, in RTR: who answers as its peer"));
    EXPECT_THAT(said, testing::HasSubstr("127.0.0.1, in RTS, does not know the PSNs"));
  }
}

// With neither in RTS there is nothing to prove; the one that goes there connects at once.
TEST_F(PeerConnectors, NothingIsProvenInRtrToWhoIsInRtr) {
  Party party(*engine);
  party.name.gid = gid("::ffff:127.0.0.2");
  ASSERT_EQ(party.search_peer(peer), 0);
  HandshakeMessage hello;
  {
    RawPeer connection = answer(party, hello);
    EXPECT_EQ(hello.stage, Stage::kRtr);
    ASSERT_TRUE(connection.send(octets_of(reply(challenge(hello, Stage::kRtr)))));
    EXPECT_EQ(connection.receive_all(), Octets());
  }
  RawPeer waits = answer(party, hello);
  EXPECT_EQ(hello.stage, Stage::kRtr);
  ASSERT_EQ(party.ready(), 0);
  EXPECT_EQ(waits.receive_all(), Octets());
  RawPeer connection = answer(party, hello);
  EXPECT_EQ(hello.stage, Stage::kRts);
  challenge_and_check(connection, hello, Stage::kRtr);
  ASSERT_TRUE(connection.send(octets_of(reply(opening(hello, Stage::kRtr)))));
  EXPECT_FALSE(connection.receive(20).empty());
}

// Run as test_rendezvous.timeouts.
TEST_F(PeerConnectors, TimeoutsLeaveAListenerThatDoesNotAnswer) {
  const core::Nanoseconds reply_time = core::settings().reply_timeout_ms * core::kMillisecond;
  if (reply_time > core::kSecond) GTEST_SKIP() << "the time-outs set are too long";
  Party party(*engine);
  party.name.gid = gid("::ffff:127.0.0.2");
  ASSERT_EQ(party.search_peer(peer), 0);
  HandshakeMessage hello;
  RawPeer connection = answer(party, hello);
  EXPECT_EQ(connection.receive_all(), Octets());
  // And it connects again.
  RawPeer again = answer(party, hello);
  challenge_and_check(again, hello);
  ASSERT_TRUE(again.send(octets_of(reply(opening(hello)))));
  EXPECT_FALSE(again.receive(20).empty());
}

}  // namespace
}  // namespace uiw::rendezvous
