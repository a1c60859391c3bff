// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How long a message will be, between two uiwarps. Pure. Thread: any.
//
// A segment says where its message goes on, not where it ends, so a receiver that does not want to
// write to memory that the peer never named can place one segment in a call directly, not
// several. For a Read it knows the length. Before a long Send or Write, to a peer that has made
// itself known (long_fpdus.h), an empty Write says it: to others, too, that would be an empty Write
// that places nothing (RFC 5041 5.2). doc/decisions/014-several-segments-in-a-call.md
#pragma once

#include <cstdint>
#include <optional>

namespace uiw::qp {

// Of the next Send or Write that has octets. All zero: it was not announced.
struct Announcement {
  uint32_t length = 0;   // octets of the message
  uint32_t segment = 0;  // octets of payload in each of its segments, but for the last one
};

// A segment with less payload than this is collected and copied: not worth placing directly.
inline constexpr uint32_t kMinDirectPlacement = 8192;

// The upper half of the Tagged Offset, "uiwm"; the lower one is the length, the STag the segment.
inline constexpr uint32_t kAnnounces = 0x7569776d;

inline constexpr uint64_t announcing_to(const Announcement& announcement) {
  return uint64_t{kAnnounces} << 32 | announcement.length;
}
// What an empty Write to this place announces, if anything.
inline constexpr std::optional<Announcement> announced_by(uint32_t stag, uint64_t to) {
  if (to >> 32 != kAnnounces) return {};
  return Announcement{static_cast<uint32_t>(to), stag};
}

}  // namespace uiw::qp
