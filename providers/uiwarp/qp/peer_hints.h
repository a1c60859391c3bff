// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Hints between two uiwarps: empty Writes whose Tagged Offset carries a meaning. Pure. Thread: any.
//
// To any other peer a hint is just an empty Write. That is legal at any time and places nothing, so
// STag and Tagged Offset are not checked (RFC 5041 5.2).
//
// The capability hint says that its sender is a uiwarp, accepts FPDUs of any size (long_fpdus.h)
// and understands length hints. It precedes the first message that gains by that. The peer answers
// with a capability hint of its own. doc/decisions/012-long-fpdus.md
//
// The length hint says how long the next Send or Write is. A segment says where in its message it
// belongs, but not where the message ends. A receiver must not write to memory that the peer has
// not named. So without the hint it places one segment directly per call, with the hint several.
// The length of a Read is known without a hint. doc/decisions/014-several-segments-in-a-call.md
//
// The immediate hint carries the immediate data of the next Send, as a Send itself has no room for
// it. It is sent only to a peer that has said, by a hint of its own, that it takes them
// (tx_immediates.cc). doc/decisions/022-send-with-immediate.md
//
// The arrival hint says which Sends and Writes its sender has received. It is sent in four cases:
// before a Send to a uiwarp that asks for acknowledgements (tx_acknowledgements.cc), if no answer
// to it has told of all that arrived; when a Send begins to wait for its receive, as the peer's
// question waits behind that Send; when the program ends the connection and the peer has not asked
// yet; and before a Terminate. doc/protocol.md, Acknowledged completions
#pragma once

#include <endian.h>

#include <cstdint>
#include <optional>

namespace uiw::qp {

// The Tagged Offset of the capability hint: the characters "uiwarp01".
inline constexpr uint64_t kCapabilityHint = 0x7569776172703031;

// The Tagged Offset of a hint that carries a value: the upper half names the hint, the lower half
// is the value.
inline constexpr uint64_t hint_offset(uint32_t tag, uint32_t value) {
  return uint64_t{tag} << 32 | value;
}
inline constexpr std::optional<uint32_t> hint_value(uint32_t tag, uint64_t to) {
  return to >> 32 == tag ? std::optional(static_cast<uint32_t>(to)) : std::nullopt;
}

// Describes the next Send or Write with payload. All zero: there was no hint.
struct LengthHint {
  uint32_t length = 0;   // bytes of the message
  uint32_t segment = 0;  // bytes of payload in each of its segments but the last
};

// The upper half of the Tagged Offset, "uiwm"; the lower one is the length, the STag the segment.
inline constexpr uint32_t kLengthHintTag = 0x7569776d;

inline constexpr uint64_t length_hint_offset(const LengthHint& hint) {
  return hint_offset(kLengthHintTag, hint.length);
}
// Decodes an empty Write to this STag and Tagged Offset, if it is a length hint.
inline constexpr std::optional<LengthHint> length_hint_of(uint32_t stag, uint64_t to) {
  const std::optional<uint32_t> length = hint_value(kLengthHintTag, to);
  return length ? std::optional(LengthHint{*length, stag}) : std::nullopt;
}

// The Tagged Offset of the hint that says that its sender takes immediate hints: the characters
// "uiwarp02".
inline constexpr uint64_t kImmediatesHint = 0x7569776172703032;

// The upper half of an immediate hint's Tagged Offset, "uiwi"; the lower one is the immediate data.
inline constexpr uint32_t kImmediateHintTag = 0x75697769;

// `immediate`: in network byte order, as verbs has it.
inline uint64_t immediate_hint_offset(uint32_t immediate) {
  return hint_offset(kImmediateHintTag, be32toh(immediate));
}
// The immediate data that an empty Write to this Tagged Offset carries, if it is a hint.
inline std::optional<uint32_t> immediate_hint_of(uint64_t to) {
  const std::optional<uint32_t> immediate = hint_value(kImmediateHintTag, to);
  return immediate ? std::optional(htobe32(*immediate)) : std::nullopt;
}

struct ArrivalHint {
  uint32_t next_send = 0;  // MSN of the first Send that has not arrived
  uint32_t writes = 0;     // Writes with payload that have arrived; modulo 2^32
  bool operator==(const ArrivalHint&) const = default;
};

// The upper half of an arrival hint's Tagged Offset, "uiwr"; the lower one is the MSN, the STag the
// number of Writes.
inline constexpr uint32_t kArrivalHintTag = 0x75697772;

inline constexpr uint64_t arrival_hint_offset(const ArrivalHint& hint) {
  return hint_offset(kArrivalHintTag, hint.next_send);
}
// Decodes an empty Write to this STag and Tagged Offset, if it is an arrival hint.
inline constexpr std::optional<ArrivalHint> arrival_hint_of(uint32_t stag, uint64_t to) {
  const std::optional<uint32_t> next_send = hint_value(kArrivalHintTag, to);
  return next_send ? std::optional(ArrivalHint{*next_send, stag}) : std::nullopt;
}

}  // namespace uiw::qp
