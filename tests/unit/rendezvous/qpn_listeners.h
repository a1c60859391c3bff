// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections to a listener by hand: of a party's peer that has no queue pair, or of a stranger.
#pragma once

#include <utility>

#include "core/gid.h"
#include "device/gid_table.h"
#include "unit/rendezvous/party.h"

namespace uiw::rendezvous {

class QpnListeners : public OnEngine {
 protected:
  // A peer that is greater than ours, so that ours waits at its listener; no queue pair, just a
  // name.
  static Name peer_of(const Party& party) { return {loopback_gid(), party.name.qp_num | 0xff0000}; }
  static RawPeer call(const Party& party) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_storage address =
        core::socket_address_of(loopback_gid(), port_of(party.name.qp_num), 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in)), 0)
        << strerror(errno);
    return RawPeer(fd);
  }
  // What the peer says first, in RTS.
  static HandshakeMessage hello(const Party& party, uint64_t nonce = 1) {
    return {MessageType::kHello, Stage::kRts, peer_of(party), party.name, {nonce, 0}};
  }
  static Transcript transcript(const HandshakeMessage& hello, const HandshakeMessage& challenge) {
    return {hello.from, hello.to, hello.stage, challenge.stage, hello.value.first};
  }
  // What the peer would prove.
  static uint64_t right_proof(const HandshakeMessage& hello, const HandshakeMessage& challenge) {
    const Psns psns{psn_of(hello.to), hello.stage == Stage::kRts ? std::optional(psn_of(hello.from))
                                                                 : std::optional<uint32_t>()};
    const auto secret = secret_of_initiator(psns, challenge.stage);
    EXPECT_TRUE(secret);
    return proof_of(transcript(hello, challenge), *secret, challenge.value.first);
  }
  static std::optional<HandshakeMessage> said_in_reply(RawPeer& peer, bool rejects) {
    mpa::StartupFrame frame;
    uint32_t consumed = 0;
    if (mpa::parse(peer.receive(kFrameSize), mpa::FrameKind::kReply, frame, consumed) !=
        mpa::ParseStatus::kComplete)
      return {};
    EXPECT_EQ(frame.reject, rejects);
    return decode_handshake_message({frame.private_data, frame.private_size});
  }
  // Says hello; nothing when that is not answered.
  static std::optional<HandshakeMessage> ask(RawPeer& peer, const HandshakeMessage& hello) {
    if (!peer.send(octets_of(request(hello)))) return {};
    const std::optional<HandshakeMessage> challenge = said_in_reply(peer, true);
    if (challenge) {
      EXPECT_EQ(challenge->type, MessageType::kChallenge);
      EXPECT_EQ(challenge->from, hello.to);
      EXPECT_EQ(challenge->to, hello.from);
      EXPECT_EQ(challenge->value.second, 0u);
    }
    return challenge;
  }
  static HandshakeMessage proof_behind(const HandshakeMessage& hello, uint64_t proof) {
    HandshakeMessage says = hello;
    says.type = MessageType::kProof;
    says.value = {proof, 0};
    return says;
  }
  static bool give(RawPeer& peer, const HandshakeMessage& hello, uint64_t proof) {
    return peer.send(octets_of(request(proof_behind(hello, proof))));
  }
  // The right peer gets in: nothing that was before has done any harm.
  static RawPeer expect_welcome(Party& party) {
    RawPeer peer = call(party);
    enter(peer, party);
    return peer;
  }
  static void enter(RawPeer& peer, Party& party) {
    const HandshakeMessage says = hello(party);
    const std::optional<HandshakeMessage> challenge = ask(peer, says);
    ASSERT_TRUE(challenge);
    prove(peer, says, *challenge);
  }
  static void prove(RawPeer& peer, const HandshakeMessage& hello,
                    const HandshakeMessage& challenge) {
    ASSERT_TRUE(give(peer, hello, right_proof(hello, challenge)));
    const std::optional<HandshakeMessage> opening = said_in_reply(peer, false);
    ASSERT_TRUE(opening);
    EXPECT_EQ(opening->type, MessageType::kOpening);
    EXPECT_EQ(opening->from, hello.to);
    EXPECT_EQ(opening->to, hello.from);
    const auto secret =
        secret_of_initiator({psn_of(hello.to), psn_of(hello.from)}, challenge.stage);
    if (hello.stage == Stage::kRts)
      EXPECT_EQ(commitment_of(transcript(hello, challenge), *secret, opening->value),
                challenge.value.first);
  }
};

}  // namespace uiw::rendezvous
