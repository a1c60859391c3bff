// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Large segments without CRC: the header is checked when it has arrived. The payload is placed as
// it arrives, or received directly into place (rx_direct.cc). The effects of a message take place
// when its last byte has arrived.
#include <algorithm>
#include <cstring>

#include "core/be.h"
#include "core/tuning.h"
#include "qp/place.h"
#include "qp/rx.h"
#include "queue/scatter.h"

namespace uiw::qp {

using core::Bytes;
using rdmap::Opcode;

// RFC 5044 6: with CRC nothing is placed unverified.
bool Rx::may_come_by_parts(size_t missing) const {
  return missing >= core::tuning::kMinPlacedByParts && missing < mpa::kMaxFpdu && !markers_ &&
         !shared_->agreement.crc;
}

// `seen`: the beginning of an FPDU.
bool Rx::comes_by_parts(Bytes seen) const {
  if (seen.size() < kHead ||
      !may_come_by_parts(mpa::fpdu_size(core::load_be16(seen.data())) - seen.size()))
    return false;
  const uint8_t* const header = seen.data() + mpa::kLengthSize;
  const Opcode opcode = rdmap::opcode_of(header[1]);
  if (ddp::is_tagged(header[0])) return opcode == Opcode::kWrite || opcode == Opcode::kReadResponse;
  return opcode >= Opcode::kSend && opcode <= Opcode::kSendSeInvalidate;
}

RxStatus Rx::begin_parts(Bytes seen) {
  const uint32_t size = core::load_be16(seen.data());
  const Bytes ulpdu = seen.subspan(mpa::kLengthSize);
  open_.active = true;
  open_.tagged = ddp::is_tagged(ulpdu[0]);
  open_.dropped = false;
  open_.size = size;
  open_.left = static_cast<uint32_t>(size - ulpdu.size());
  open_.trailer = mpa::pad_size(size) + mpa::kCrcSize;
  std::memcpy(open_.header, ulpdu.data(), sizeof open_.header);
  const RxStatus status = on_ulpdu(ulpdu, size);
  if (status != RxStatus::kOk) open_.active = false;
  return status;
}

Rx::Segment Rx::open_segment() const {
  const uint32_t header_size = open_.tagged ? ddp::kTaggedHeaderSize : ddp::kUntaggedHeaderSize;
  return {{open_.header, header_size}, open_.size, open_.tagged, header_size};
}

// Consumes from `octets` what belongs to the open segment.
RxStatus Rx::on_part(Bytes& octets) {
  const size_t taken = std::min<size_t>(open_.left, octets.size());
  if (taken > 0) {
    const RxStatus status = place(octets.first(taken));
    if (status != RxStatus::kOk) return status;
    octets = octets.subspan(taken);
  }
  if (open_.left > 0) return RxStatus::kOk;
  const size_t skipped = std::min<size_t>(open_.trailer, octets.size());
  open_.trailer -= static_cast<uint32_t>(skipped);
  octets = octets.subspan(skipped);
  if (open_.trailer > 0) return RxStatus::kOk;
  open_.active = false;
  const RxStatus status = finish(open_segment());
  if (status == RxStatus::kOk) tell(shared_->first_fpdu);
  return status;
}

RxStatus Rx::place(Bytes payload) {
  const Segment segment = open_segment();
  RxStatus status = RxStatus::kOk;
  if (open_.dropped) {
    // The segment belongs to a message that is dropped.
  } else if (!open_.tagged) {
    status = place_send(segment, payload);
  } else if (open_.opcode() == Opcode::kReadResponse) {
    status = place_response(payload);
  } else {
    // Looked up again for each part: the region may have been deregistered in between.
    const uint64_t to = ddp::decode_tagged(open_.header).to + (segment.payload_size() - open_.left);
    mem::LastRegion::Found region;
    if (find_sink(segment, to, open_.left, region, status))
      shared_->place(region->memory + (to - region->start), payload);
  }
  open_.left -= static_cast<uint32_t>(payload.size());
  return status;
}

RxStatus Rx::finish(const Segment& segment) {
  const Opcode opcode = open_.opcode();
  if (open_.dropped) return RxStatus::kOk;
  if (!open_.tagged) {
    const ddp::UntaggedHeader header = ddp::decode_untagged(open_.header);
    return header.last ? finish_send(segment, opcode, header) : RxStatus::kOk;
  }
  const ddp::TaggedHeader header = ddp::decode_tagged(open_.header);
  if (opcode == Opcode::kReadResponse) return finish_read_response(header);
  return header.last ? finish_write() : RxStatus::kOk;
}

}  // namespace uiw::qp
