// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Atomic operations: their headers behind the DDP header and what they make of a word (RFC 7306
// section 5).
#pragma once

#include <cstdint>

#include "core/be.h"

namespace uiw::rdmap {

// AOpCode, RFC 7306 fig. 5. The text also speaks of a Swap, but gives it no code.
enum class AtomicOp : uint8_t { kFetchAdd = 0, kCmpSwap = 2 };
inline constexpr bool is_defined(AtomicOp op) {
  return op == AtomicOp::kFetchAdd || op == AtomicOp::kCmpSwap;
}

inline constexpr uint64_t kAllBits = ~uint64_t{0};

// RFC 7306 fig. 4, 52 octets. The defaults are what goes out where an operation does not use a
// field.
inline constexpr uint32_t kAtomicRequestSize = 52;
struct AtomicRequest {
  AtomicOp op = AtomicOp::kFetchAdd;  // as received: whatever 4 bits can say
  uint32_t id = 0;                    // comes back in the response
  uint32_t stag = 0;
  uint64_t to = 0;
  uint64_t add_or_swap = 0;
  uint64_t add_or_swap_mask =
      0;                 // FetchAdd: ends of fields, 0 is one of 64 bits. CmpSwap: the bits to swap
  uint64_t compare = 0;  // CmpSwap only
  uint64_t compare_mask = kAllBits;
};
inline AtomicRequest decode_atomic_request(const uint8_t* p) {
  return {static_cast<AtomicOp>(p[3] & 0xf), core::load_be32(p + 4),  core::load_be32(p + 8),
          core::load_be64(p + 12),           core::load_be64(p + 20), core::load_be64(p + 28),
          core::load_be64(p + 36),           core::load_be64(p + 44)};
}
inline uint8_t* encode(uint8_t* p, const AtomicRequest& r) {
  core::store_be32(p, static_cast<uint8_t>(r.op));
  core::store_be32(p + 4, r.id);
  core::store_be32(p + 8, r.stag);
  core::store_be64(p + 12, r.to);
  core::store_be64(p + 20, r.add_or_swap);
  core::store_be64(p + 28, r.add_or_swap_mask);
  core::store_be64(p + 36, r.compare);
  core::store_be64(p + 44, r.compare_mask);
  return p + kAtomicRequestSize;
}

// RFC 7306 fig. 6, 12 octets (section 4 says 32, the figure and its use leave no doubt).
inline constexpr uint32_t kAtomicResponseSize = 12;
struct AtomicResponse {
  uint32_t id = 0;
  uint64_t original = 0;  // what the word was before
};
inline AtomicResponse decode_atomic_response(const uint8_t* p) {
  return {core::load_be32(p), core::load_be64(p + 4)};
}
inline uint8_t* encode(uint8_t* p, const AtomicResponse& r) {
  core::store_be32(p, r.id);
  core::store_be64(p + 4, r.original);
  return p + kAtomicResponseSize;
}

// RFC 7306 5.1.1: no carry leaves a bit that the mask names. Those bits are added apart, without
// carry; what the others carry into them is in the sum.
inline constexpr uint64_t masked_sum(uint64_t original, uint64_t add, uint64_t mask) {
  const uint64_t ends = mask | uint64_t{1} << 63;
  return ((original & ~ends) + (add & ~ends)) ^ ((original ^ add) & ends);
}

// What the word is afterwards, of an operation that is_defined().
inline constexpr uint64_t atomic_result(const AtomicRequest& r, uint64_t original) {
  if (r.op == AtomicOp::kFetchAdd) return masked_sum(original, r.add_or_swap, r.add_or_swap_mask);
  if ((r.compare ^ original) & r.compare_mask) return original;  // RFC 7306 5.1.2
  return (original & ~r.add_or_swap_mask) | (r.add_or_swap & r.add_or_swap_mask);
}

}  // namespace uiw::rdmap
