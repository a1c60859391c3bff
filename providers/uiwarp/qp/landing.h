// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where the next octets of the stream belong, as far as that is known before they are there.
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

// Memory of the application, held until Rx::landed(). Copies nothing, so keep it for one call that
// receives. First the rest of the segment that has begun; then, where it is known how the message
// goes on, for each of its next segments what lies between two payloads, and the payload.
struct Landing {
  static constexpr size_t kPlaces = 4;  // SGEs that the rest of one segment may have
  static constexpr size_t kAhead = 8;   // further segments
  // Of an FPDU, until it is known what it is and where its payload belongs.
  static constexpr uint32_t kHead = mpa::kLengthSize + ddp::kUntaggedHeaderSize;
  static constexpr uint32_t kTrailer = 3 + mpa::kCrcSize;  // pad and CRC, at most

  std::array<iovec, kPlaces + 2 * kAhead + 1> pieces;  // one more, for whoever receives
  size_t count = 0;
  size_t size = 0;  // octets in all; behind them comes what is fed to Rx::on_octets()

 private:
  friend class Rx;
  // A segment that is expected.
  struct Next {
    uint8_t between[kPlacedLast + kTrailer + kHead];
    uint32_t lead;  // octets of `between` before its length field
    uint32_t head;  // from there on, octets that say whether it is the one
    uint8_t expected[kHead];
    uint8_t* place;
    uint32_t size;  // octets there
    uint32_t between_size() const { return lead + kHead; }
  };

  size_t open = 0;  // octets that belong to the segment that has begun
  size_t next_count = 0;
  std::array<Next, kAhead> next;
  std::array<mem::RegionRef, kPlaces> regions;
};

}  // namespace uiw::qp
