// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Direct placement: a scatter list that receives the next bytes of the stream straight into their
// destination, as far as it is known before they have come. Thread: the driver of the connection's
// receive side.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "ddp/header.h"
#include "mem/table.h"
#include "mpa/framing.h"
#include "qp/place.h"

namespace uiw::qp {

// The list points into memory of the application, whose regions are referenced until
// Rx::placed_directly(). So keep it for one receive call only. It begins with the rest of the open
// segment. Where the rest of the message is known too, there follow for each of its next segments a
// piece for the bytes between two payloads and one for the payload.
struct DirectPlacement {
  static constexpr size_t kMaxSges = 4;  // SGEs that the rest of the open segment may span
  static constexpr size_t kAhead = 8;    // further segments
  // Bytes of an FPDU that tell what it is and where its payload belongs.
  static constexpr uint32_t kHead = mpa::kLengthSize + ddp::kUntaggedHeaderSize;
  static constexpr uint32_t kTrailer = 3 + mpa::kCrcSize;  // pad and CRC at most

  std::array<iovec, kMaxSges + 2 * kAhead + 1> pieces;  // the last for the caller's buffer
  size_t count = 0;
  size_t size = 0;  // bytes of all pieces; what comes after these bytes is fed to Rx::on_octets()

 private:
  friend class Rx;
  // An expected segment.
  struct Next {
    uint8_t between[kPlacedLast + kTrailer + kHead];
    uint32_t lead;  // bytes of `between` before the length field of its FPDU
    uint32_t head;  // bytes after those, which are compared with `expected`
    uint8_t expected[kHead];
    uint8_t* payload;  // its destination
    uint32_t size;     // bytes of payload in this piece
    uint32_t between_size() const { return lead + kHead; }
  };

  size_t open = 0;  // bytes that belong to the open segment
  size_t next_count = 0;
  std::array<Next, kAhead> next;
  std::array<mem::RegionRef, kMaxSges> regions;
};

}  // namespace uiw::qp
