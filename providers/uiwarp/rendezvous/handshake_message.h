// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The messages by which two queue pairs that are connected by number establish that each is the
// other's peer. They are the private data of MPA start-up frames. Each says which queue pair sends
// it, which one it is for and in which state the sender is, and carries one of the four values that
// prove knowledge of the PSNs (proof.h). Layout, all big-endian: "UIWM", version 2, type, stage and
// service (0: RC, as all were once; 1: UC), an octet each; then number (4 octets) and GID (16) of
// the sender, the same of the receiver, and 16 octets whose meaning depends on the type.
#pragma once

#include <optional>

#include "core/bytes.h"
#include "core/service.h"
#include "core/siphash.h"
#include "rendezvous/name.h"

namespace uiw::rendezvous {

// In the order in which they are sent. The initiator sends MPA Requests, the responder MPA Replies.
enum class MessageType : uint8_t {
  kHello = 1,      // value: the initiator's nonce, and zero
  kChallenge = 2,  // value: the responder's commitment, and zero; in a Reply that rejects
  kProof = 3,      // value: the initiator's proof, and zero
  kOpening = 4,    // value: the key of the commitment; in the Reply that accepts
};

// How far the program has taken the queue pair.
enum class Stage : uint8_t {
  kRtr = 1,  // it knows the PSN with which its peer sends
  kRts = 2,  // and the PSN with which it sends itself
};

inline const char* text_of(Stage stage) {
  return stage == Stage::kRtr ? "RTR" : "RTS";
}

struct HandshakeMessage {
  MessageType type = MessageType::kHello;
  Stage stage = Stage::kRtr;  // of the sender
  Name from, to;
  core::SipKey value;
  core::Service service = core::Service::kReliable;  // of the sender
  bool operator==(const HandshakeMessage&) const = default;
};

inline constexpr uint32_t kHandshakeMessageSize = 64;

// Writes kHandshakeMessageSize octets.
void encode(uint8_t* out, const HandshakeMessage& message);
// Nothing when the octets are no such message: wrong size, key or version, unknown type, stage or
// service, or a number of more than 24 bits.
std::optional<HandshakeMessage> decode_handshake_message(core::Bytes octets);
// Whether the octets come from a uiwarp of another version.
bool is_of_another_version(core::Bytes octets);

}  // namespace uiw::rendezvous
