// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mpa/startup_frame.h"

#include <algorithm>
#include <cstring>

#include "core/assert.h"
#include "core/be.h"

namespace uiw::mpa {
namespace {

constexpr char kRequestKey[] = "MPA ID Req Frame";
constexpr char kReplyKey[] = "MPA ID Rep Frame";
static_assert(sizeof kRequestKey == kStartupKeySize + 1 && sizeof kReplyKey == kStartupKeySize + 1);

constexpr uint32_t kFlagsOffset = kStartupKeySize;
constexpr uint32_t kRevisionOffset = kFlagsOffset + 1;
constexpr uint32_t kLengthOffset = kFlagsOffset + 2;

constexpr uint8_t kCrcFlag = 0x40;     // C
constexpr uint8_t kRejectFlag = 0x20;  // R

// RFC 6581 9: two 16-bit words, each two flags and a 14-bit depth.
constexpr uint16_t kUpperFlag = 0x8000;  // A in the first word, C in the second
constexpr uint16_t kLowerFlag = 0x4000;  // B in the first word, D in the second
constexpr uint16_t kDepthMask = 0x3fff;

const char* key_of(FrameKind kind) {
  return kind == FrameKind::kRequest ? kRequestKey : kReplyKey;
}

uint16_t word(bool upper, bool lower, uint16_t depth) {
  return static_cast<uint16_t>((upper ? kUpperFlag : 0) | (lower ? kLowerFlag : 0) |
                               (depth & kDepthMask));
}

Enhanced decode_enhanced(const uint8_t* p) {
  uint16_t first = core::load_be16(p);
  uint16_t second = core::load_be16(p + 2);
  Enhanced block;
  block.peer_to_peer = first & kUpperFlag;
  block.rtr_send = first & kLowerFlag;
  block.ird = first & kDepthMask;
  block.rtr_write = second & kUpperFlag;
  block.rtr_read = second & kLowerFlag;
  block.ord = second & kDepthMask;
  return block;
}

// Header and enhanced block; the end.
uint8_t* encode_head(uint8_t* out, const StartupFrame& frame) {
  uint32_t block_size = frame.enhanced ? kEnhancedBlockSize : 0;
  UIW_ASSERT(frame.private_size + block_size <= kMaxPrivateData);
  std::memcpy(out, key_of(frame.kind), kStartupKeySize);
  out[kFlagsOffset] =
      static_cast<uint8_t>((frame.markers ? kMarkersFlag : 0) | (frame.crc ? kCrcFlag : 0) |
                           (frame.reject ? kRejectFlag : 0) | (frame.enhanced ? kEnhancedFlag : 0));
  out[kRevisionOffset] = frame.revision;
  core::store_be16(out + kLengthOffset, static_cast<uint16_t>(frame.private_size + block_size));
  uint8_t* p = out + kStartupHeaderSize;
  if (frame.enhanced) {
    const Enhanced& block = *frame.enhanced;
    core::store_be16(p, word(block.peer_to_peer, block.rtr_send, block.ird));
    core::store_be16(p + 2, word(block.rtr_write, block.rtr_read, block.ord));
    p += kEnhancedBlockSize;
  }
  return p;
}

}  // namespace

StartupHead head_of(const StartupFrame& frame) {
  StartupHead head{};
  encode_head(head.data(), frame);
  return head;
}

uint32_t encode(uint8_t* out, const StartupFrame& frame) {
  uint8_t* const p = encode_head(out, frame);
  std::memcpy(p, frame.private_data, frame.private_size);
  return static_cast<uint32_t>(p - out) + frame.private_size;
}

ParseStatus parse(core::Bytes octets, FrameKind expected, StartupFrame& out, uint32_t& consumed) {
  const uint8_t* p = octets.data();
  // Every check is made as soon as its octets are there, so that a connection without MPA ends at
  // once rather than at the start-up timeout.
  size_t key_octets = std::min<size_t>(octets.size(), kStartupKeySize);
  if (key_octets > 0 && std::memcmp(p, key_of(expected), key_octets) != 0)
    return ParseStatus::kBadKey;
  if (octets.size() <= kRevisionOffset) return ParseStatus::kNeedMore;
  uint8_t revision = p[kRevisionOffset];
  if (revision != 1 && revision != 2) return ParseStatus::kBadRevision;
  if (octets.size() < kStartupHeaderSize) return ParseStatus::kNeedMore;

  // RFC 6581 6: the S flag exists from revision 2 on. Before, the bit is reserved and not looked
  // at.
  uint8_t flags = p[kFlagsOffset];
  bool enhanced = revision >= 2 && (flags & kEnhancedFlag);
  uint32_t block_size = enhanced ? kEnhancedBlockSize : 0;
  uint32_t length = core::load_be16(p + kLengthOffset);
  if (length > kMaxPrivateData || length < block_size) return ParseStatus::kBadLength;
  if (octets.size() < kStartupHeaderSize + length) return ParseStatus::kNeedMore;

  out = StartupFrame{};
  out.kind = expected;
  out.markers = flags & kMarkersFlag;
  out.crc = flags & kCrcFlag;
  // RFC 5044 7.1.1: R in a Request is not checked.
  out.reject = expected == FrameKind::kReply && (flags & kRejectFlag);
  out.revision = revision;
  p += kStartupHeaderSize;
  if (enhanced) out.enhanced = decode_enhanced(p);
  out.private_size = static_cast<uint16_t>(length - block_size);
  std::memcpy(out.private_data, p + block_size, out.private_size);
  consumed = kStartupHeaderSize + length;
  return ParseStatus::kComplete;
}

const char* describe(ParseStatus status) {
  switch (status) {
    case ParseStatus::kNeedMore:
      return "the MPA start-up frame is not complete yet";
    case ParseStatus::kComplete:
      return "the MPA start-up frame is complete";
    case ParseStatus::kBadKey:
      return "the peer does not speak MPA: the key of its start-up frame is wrong";
    case ParseStatus::kBadRevision:
      return "the peer asks for an MPA revision other than 1 and 2";
    case ParseStatus::kBadLength:
      return "the private data length of the peer's MPA start-up frame is not allowed";
  }
  return "unknown";
}

}  // namespace uiw::mpa
