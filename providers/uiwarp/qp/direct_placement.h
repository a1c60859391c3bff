// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Direct placement: the scatter list with which the next bytes of the stream are received into the
// memory that they belong to, as far as that is known before they have come.
// Thread: the driver of the connection's receive side.
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

// Memory of the application; its regions are referenced until Rx::placed_directly(), so keep it for
// one call that receives. First the rest of the segment that has begun; then, where it is known how
// the message goes on, for each of its next segments the bytes between two payloads, and the
// payload.
struct DirectPlacement {
  static constexpr size_t kMaxSges = 4;  // SGEs that the rest of one segment may have
  static constexpr size_t kAhead = 8;    // further segments
  // Of an FPDU, until it is known what it is and where its payload belongs.
  static constexpr uint32_t kHead = mpa::kLengthSize + ddp::kUntaggedHeaderSize;
  static constexpr uint32_t kTrailer = 3 + mpa::kCrcSize;  // pad and CRC, at most

  std::array<iovec, kMaxSges + 2 * kAhead + 1> pieces;  // one more, for the caller's buffer
  size_t count = 0;
  size_t size = 0;  // bytes in all; behind them comes what is fed to Rx::on_octets()

 private:
  friend class Rx;
  // A segment that is expected.
  struct Next {
    uint8_t between[kPlacedLast + kTrailer + kHead];
    uint32_t lead;  // bytes of `between` before the length field of its FPDU
    uint32_t head;  // bytes from there on that are compared with `expected`
    uint8_t expected[kHead];
    uint8_t* payload;  // where it belongs
    uint32_t size;     // bytes of it
    uint32_t between_size() const { return lead + kHead; }
  };

  size_t open = 0;  // bytes that belong to the segment that has begun
  size_t next_count = 0;
  std::array<Next, kAhead> next;
  std::array<mem::RegionRef, kMaxSges> regions;
};

}  // namespace uiw::qp
