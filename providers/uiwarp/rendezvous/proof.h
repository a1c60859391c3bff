// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How two queue pairs that meet prove to each other that they know the PSNs which their programs
// exchanged, and a stranger learns none. Pure.
//
// A PSN has 24 bits, few enough to try all of them against whatever was computed from it. So
// neither end shows anything of that kind to an end that might be a stranger, with one exception:
//   1. the caller says a nonce;
//   2. the answerer says a commitment: a hash of what has been said and of the PSNs, under a key of
//      128 random bits. Without the key it tells nothing;
//   3. the caller says his proof: a hash of all that under the PSNs. Wrong: the answerer hangs up;
//   4. the answerer says the key, by which the caller sees that the PSNs were known before step 3.
// Who calls learns nothing before he was right. Who answers without knowing the PSNs has committed
// himself to a guess before he saw the proof; when it turns out wrong he could find the right PSNs
// from the proof, so the caller proves them to whoever answers once and never again. Either has one
// guess in 2^24 at a time; meeting.cc bounds how many a caller has.
// Both nonces are fresh, so nothing can be said twice; the names and who calls are in both hashes,
// so nothing said to one queue pair, or by one side, is worth anything at another.
#pragma once

#include <optional>

#include "rendezvous/handshake_message.h"

namespace uiw::rendezvous {

// The PSNs that an end knows. 24 bits each.
struct Psns {
  uint32_t receive = 0;          // rq_psn: the peer sends with it
  std::optional<uint32_t> send;  // sq_psn: known from RTS on
  Stage stage() const { return send ? Stage::kRts : Stage::kRtr; }
};

// What two ends have in common: the PSN of each direction that both know. An end in RTR knows what
// comes to it, so of the two at least one has to be in RTS; else nothing.
std::optional<uint64_t> secret_of_caller(const Psns& own, Stage answerer);
std::optional<uint64_t> secret_of_answerer(const Psns& own, Stage caller);

// What was said before anything is proven.
struct Introduction {
  Name caller, answerer;
  Stage caller_stage, answerer_stage;
  uint64_t nonce;
};

uint64_t commitment_of(const Introduction& said, uint64_t secret, const core::SipKey& opening);
uint64_t proof_of(const Introduction& said, uint64_t secret, uint64_t commitment);

// Octets that nobody can guess. False when the kernel has none.
bool make_random(core::SipKey& key);

}  // namespace uiw::rendezvous
