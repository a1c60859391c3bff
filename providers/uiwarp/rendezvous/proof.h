// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How two queue pairs prove to each other that they know the PSNs that their programs have
// exchanged, without revealing a PSN to others. Pure.
//
// A PSN has 24 bits: a peer with a value that was computed from it can find it by trying all of
// them. So neither end sends such a value to an end that may not be the peer, with one exception:
//   1. The initiator sends a nonce.
//   2. the responder sends a commitment: a hash of what was sent and of the PSNs, under a key of
//      128 random bits. Without the key it reveals nothing;
//   3. the initiator sends its proof: a hash of all that under the PSNs. When it is wrong the
//      responder closes the connection;
//   4. the responder sends the key, by which the initiator checks that the PSNs were known to the
//      responder before step 3.
// An initiator learns nothing until its proof was right. A responder that does not know the PSNs
// has committed itself to a guess before it sees the proof. If the guess was wrong, it can compute
// the PSNs from the proof; so the initiator sends its proof to a responder once and then never
// again. Each end has one guess in 2^24 at a time; peer_search.cc limits how many guesses an
// initiator has. The nonce and the key are fresh, so no message can be replayed. The names and the
// roles are in both hashes, so a message to one queue pair, or by one role, is useless for another.
#pragma once

#include <optional>

#include "rendezvous/handshake_message.h"

namespace uiw::rendezvous {

// The PSNs that an end knows. 24 bits each.
struct Psns {
  uint32_t receive = 0;          // rq_psn: the peer's sq_psn
  std::optional<uint32_t> send;  // sq_psn: known from RTS on
  Stage stage() const { return send ? Stage::kRts : Stage::kRtr; }
};

// The secret shared by the two ends: the PSNs of the directions that both know. An end in RTR knows
// only the PSN of what it receives, so at least one of the two must be in RTS; else there is none.
std::optional<uint64_t> secret_of_initiator(const Psns& own, Stage responder);
std::optional<uint64_t> secret_of_responder(const Psns& own, Stage initiator);

// What both ends know before anything is proven.
struct Transcript {
  Name initiator, responder;
  Stage initiator_stage, responder_stage;
  uint64_t nonce;
};

uint64_t commitment_of(const Transcript& said, uint64_t secret, const core::SipKey& opening);
uint64_t proof_of(const Transcript& said, uint64_t secret, uint64_t commitment);

// Makes bytes that cannot be guessed. False when the kernel has none.
bool make_random(core::SipKey& key);

}  // namespace uiw::rendezvous
