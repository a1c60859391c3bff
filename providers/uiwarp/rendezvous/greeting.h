// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What two queue pairs that meet say to each other in the private data of MPA start-up frames: who
// speaks to whom, in which state, and one word of the four by which they prove that they know the
// PSNs (proof.h). Layout, all big-endian: "UIWM", version 2, word, stage and a zero octet, then
// number (4 octets) and GID (16) of the sender, the same of the queue pair it means, and 16 octets
// that the word gives a meaning to.
#pragma once

#include <optional>

#include "core/bytes.h"
#include "core/siphash.h"
#include "rendezvous/name.h"

namespace uiw::rendezvous {

// In the order in which they are said; the caller's are MPA Requests, the answerer's MPA Replies.
enum class Word : uint8_t {
  kHello = 1,      // value: the caller's nonce, and zero
  kChallenge = 2,  // value: the answerer's commitment, and zero. A Reply that rejects
  kProof = 3,      // value: the caller's proof, and zero
  kOpening = 4,    // value: the key of the commitment. The Reply that accepts
};

// How far the program has taken the queue pair.
enum class Stage : uint8_t {
  kRtr = 1,  // it knows the PSN that its peer sends with
  kRts = 2,  // and the one that it sends with itself
};

inline const char* text_of(Stage stage) {
  return stage == Stage::kRtr ? "RTR" : "RTS";
}

struct Greeting {
  Word word = Word::kHello;
  Stage stage = Stage::kRtr;  // of the sender
  Name from, to;
  core::SipKey value;
  bool operator==(const Greeting&) const = default;
};

inline constexpr uint32_t kGreetingSize = 64;

// Writes kGreetingSize octets.
void encode(uint8_t* out, const Greeting& greeting);
// Nothing when the octets are not a greeting: another size, key or version, an unknown word or
// stage, a number beyond 24 bits.
std::optional<Greeting> decode_greeting(core::Bytes octets);
// Whether that is because a uiwarp of another version speaks.
bool is_of_another_version(core::Bytes octets);

}  // namespace uiw::rendezvous
