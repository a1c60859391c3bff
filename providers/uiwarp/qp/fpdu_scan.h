// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Finds the FPDUs in one direction of a connection from its byte stream: where each begins, how
// long it is, and its headers. Reads no payload of programs. Pure. Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/be.h"
#include "ddp/header.h"
#include "mpa/framing.h"
#include "mpa/markers.h"
#include "rdmap/atomic.h"
#include "rdmap/header.h"
#include "rdmap/immediate.h"
#include "rdmap/terminate.h"

namespace uiw::qp {

// How many bytes of a ULPDU that begins with these two bytes are headers, or data of the protocol:
// RFC 5040 section 4, RFC 7306.
inline uint32_t header_of(uint8_t ddp_control, uint8_t rdmap_control) {
  if (ddp::is_tagged(ddp_control)) return ddp::kTaggedHeaderSize;
  switch (rdmap::opcode_of(rdmap_control)) {
    case rdmap::Opcode::kReadRequest:
      return ddp::kUntaggedHeaderSize + rdmap::kReadRequestSize;
    case rdmap::Opcode::kTerminate:
      return ddp::kUntaggedHeaderSize + rdmap::kMaxTerminateBody;
    case rdmap::Opcode::kImmediate:
    case rdmap::Opcode::kImmediateSe:
      return ddp::kUntaggedHeaderSize + rdmap::kImmediateSize;
    case rdmap::Opcode::kAtomicRequest:
      return ddp::kUntaggedHeaderSize + rdmap::kAtomicRequestSize;
    case rdmap::Opcode::kAtomicResponse:
      return ddp::kUntaggedHeaderSize + rdmap::kAtomicResponseSize;
    default:
      return ddp::kUntaggedHeaderSize;
  }
}
inline constexpr uint32_t kMaxUlpduHead = ddp::kUntaggedHeaderSize + rdmap::kMaxTerminateBody;
static_assert(kMaxUlpduHead >= ddp::kUntaggedHeaderSize + rdmap::kAtomicRequestSize);

class FpduScan {
 public:
  explicit FpduScan(bool markers) : markers_(markers) {}

  uint64_t position() const { return begins_; }  // stream position where the current FPDU begins
  uint32_t ulpdu_size() const { return size_; }
  core::Bytes head() const {
    return {octets_ + mpa::kLengthSize, std::min(seen_ - mpa::kLengthSize, size_)};
  }

  // Takes the next bytes of the stream. Calls found() at the last byte of each FPDU.
  template <class Found>
  void feed(core::Bytes octets, Found&& found) {
    while (!octets.empty()) {
      // RFC 5044 4.3: a marker between two FPDUs belongs to the second.
      const uint32_t in_block = static_cast<uint32_t>(position_ % mpa::kMarkerInterval);
      const bool in_marker = markers_ && in_block < mpa::kMarkerSize;
      size_t taken = octets.size();
      if (markers_)
        taken = std::min<size_t>(taken,
                                 (in_marker ? mpa::kMarkerSize : mpa::kMarkerInterval) - in_block);
      if (!in_marker) taken = take(octets.first(taken));
      position_ += taken;
      octets = octets.subspan(taken);
      if (left_ > 0 || seen_ < wanted_) continue;
      found();
      begin();
    }
  }

 private:
  void begin() {
    begins_ = position_;
    seen_ = left_ = 0;
    wanted_ = kFirst;
  }

  // Takes the bytes that belong to this FPDU; returns how many.
  size_t take(core::Bytes octets) {
    if (seen_ == wanted_) {
      const size_t passed = std::min<size_t>(left_, octets.size());
      left_ -= static_cast<uint32_t>(passed);
      return passed;
    }
    const size_t taken = std::min<size_t>(wanted_ - seen_, octets.size());
    std::memcpy(octets_ + seen_, octets.data(), taken);
    seen_ += static_cast<uint32_t>(taken);
    if (seen_ < wanted_) return taken;
    if (wanted_ == kFirst) look();
    return taken;
  }

  // The length and control octets have come. (Of a shorter ULPDU the pad stands in their place.)
  void look() {
    size_ = core::load_be16(octets_);
    const uint32_t head = std::min(size_, header_of(octets_[2], octets_[3]));
    wanted_ = std::max(kFirst, mpa::kLengthSize + head);
    left_ = mpa::fpdu_size(size_) - wanted_;
  }

  static constexpr uint32_t kFirst = mpa::kLengthSize + 2;  // length and both control octets

  const bool markers_;
  uint64_t position_ = 0, begins_ = 0;
  uint32_t wanted_ = kFirst, seen_ = 0;  // of octets_
  uint32_t left_ = 0;                    // bytes of the FPDU after those
  uint32_t size_ = 0;
  uint8_t octets_[mpa::kLengthSize + kMaxUlpduHead] = {};
};

}  // namespace uiw::qp
