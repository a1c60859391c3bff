// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// From bytes to segments: FPDU framing and CRC, basic header checks, and reporting faults.
#include "qp/rx.h"

#include <algorithm>
#include <cstring>

#include "core/crc32c.h"
#include "mpa/markers.h"

namespace uiw::qp {

using core::Bytes;
using core::TermCode;
using rdmap::Opcode;

namespace {

// It asks something of the end that it comes to. An empty Write stores nothing: it is a hint
// (peer_hints.h), which may answer.
bool asks(Opcode opcode, uint32_t payload_size) {
  switch (opcode) {
    case Opcode::kWrite:
      return payload_size > 0;
    case Opcode::kReadResponse:
    case Opcode::kAtomicResponse:
    case Opcode::kTerminate:
      return false;
    default:
      return true;
  }
}

}  // namespace

void Rx::start(Shared& shared, bool wait_for_receive) {
  shared_ = &shared;
  send_msn_ = request_msn_ = atomic_msn_ = shared.first_msn;
  shared.here.next_send.store(shared.first_msn, std::memory_order_relaxed);
  shared.at_peer.next_send.store(shared.first_msn, std::memory_order_relaxed);
  wait_for_receive_ = wait_for_receive && shared.service == core::Service::kReliable;
  markers_ = shared.agreement.rx_markers;
}

inline mpa::Extent Rx::extent(Bytes seen) const {
  return markers_ ? mpa::marked_extent(seen, position_) : mpa::extent(seen);
}

RxStatus Rx::on_octets(Bytes octets) {
  queue::CompletionBatch completions(*shared_->recv_cq);
  completions_ = &completions;
  sends_first_ = false;
  const RxStatus status = take(octets);
  completions_ = nullptr;
  regions_.release();
  return status;
}

RxStatus Rx::take(Bytes octets) {
  if (ended_) return RxStatus::kOk;
  if (waiting_ != RxStatus::kOk) return hold_back(waiting_, octets);
  while (!octets.empty()) {
    if (open_.active) {
      tell_completions();
      const RxStatus status = on_part(octets);
      if (status != RxStatus::kOk) return status;
      continue;
    }
    // An FPDU that arrived complete is used in place; only an incomplete one is copied to staging_.
    const mpa::Extent wanted = extent(staging_.empty() ? octets : staging_.octets());
    if (staging_.empty() && wanted.whole && octets.size() >= wanted.size) {
      const RxStatus status = hold_back(on_fpdu(octets.first(wanted.size)), octets);
      if (status != RxStatus::kOk) return status;
      octets = octets.subspan(wanted.size);
      continue;
    }
    if (staging_.empty() && comes_by_parts(octets)) return hold_back(begin_parts(octets), octets);
    // For an FPDU that may be placed in parts the header is enough to decide.
    const bool head_first =
        wanted.whole && staging_.size() < kHead && may_come_by_parts(wanted.size - kHead);
    const size_t missing = (head_first ? kHead : wanted.size) - staging_.size();
    const size_t taken = std::min(missing, octets.size());
    if (!staging_.append(octets.first(taken)))
      return raise(TermCode::kDdpLocalCatastrophic, nullptr);
    octets = octets.subspan(taken);
    if (taken < missing || !wanted.whole) continue;
    if (head_first && !comes_by_parts(staging_.octets())) continue;
    if (head_first) {
      const RxStatus status = hold_back(begin_parts(staging_.octets()), octets);
      if (status != RxStatus::kOk) return status;
      staging_.clear();
      continue;
    }
    const RxStatus status = hold_back(on_fpdu(staging_.octets()), octets);
    if (status != RxStatus::kOk) return status;
    staging_.clear();
  }
  return RxStatus::kOk;
}

// Keeps `octets`: a Send that may not take its receive yet, and what came behind it.
RxStatus Rx::hold_back(RxStatus status, Bytes octets) {
  if (has_to_wait(status) && !staging_.append(octets))
    return raise(TermCode::kDdpLocalCatastrophic, nullptr);
  return status;
}

RxStatus Rx::resume() {
  if (waiting_ == RxStatus::kOk) return RxStatus::kOk;
  waiting_ = RxStatus::kOk;
  const RxStaging kept(std::move(staging_));
  return on_octets(kept.octets());
}

RxStatus Rx::give_up_waiting() {
  wait_for_receive_ = false;
  const RxStatus status = resume();
  wait_for_receive_ = true;
  return status;
}

RxStatus Rx::take_answers_only() {
  taken_ = Taken::kAnswers;
  return resume();
}

// RFC 5044 4.4: covers length, ULPDU, pad and the markers among them; stored least significant
// byte first.
inline bool Rx::crc_is_right(Bytes fpdu) const {
  if (!shared_->agreement.crc) return true;
  const size_t covered = fpdu.size() - mpa::kCrcSize;
  uint32_t received;
  std::memcpy(&received, fpdu.data() + covered, sizeof received);
  return core::crc32c(fpdu.data(), covered) == received;
}

// An FPDU that begins in one receive and ends in the next costs another copy.
size_t Rx::good_size(size_t room) const {
  if (last_fpdu_ < core::tuning::kLargePayload || open_.active || waiting_ != RxStatus::kOk)
    return room;
  size_t rest = 0;
  if (!staging_.empty()) {
    const mpa::Extent begun = extent(staging_.octets());
    if (!begun.whole) return room;
    rest = begun.size - staging_.size();
  }
  const size_t good = rest + (room - std::min(room, rest)) / last_fpdu_ * last_fpdu_;
  return good > 0 ? std::min(good, room) : room;
}

RxStatus Rx::on_fpdu(Bytes fpdu) {
  last_fpdu_ = static_cast<uint32_t>(fpdu.size());
  if (fpdu.size() > core::tuning::kLongFpdu) tell_completions();
  if (markers_) return on_marked_fpdu(fpdu);
  if (!crc_is_right(fpdu)) return raise(TermCode::kMpaCrc, nullptr);
  const uint32_t size = core::load_be16(fpdu.data());
  return on_ulpdu(fpdu.subspan(mpa::kLengthSize, size), size);
}

RxStatus Rx::on_marked_fpdu(Bytes fpdu) {
  if (!crc_is_right(fpdu)) return raise(TermCode::kMpaCrc, nullptr);
  // Strips the markers from a copy: the bytes are parsed again if the message has to wait for a
  // receive.
  RxStaging plain;
  if (!plain.append(fpdu)) return raise(TermCode::kDdpLocalCatastrophic, nullptr);
  // RFC 5044 8(3)
  if (!mpa::strip_markers(fpdu, position_, plain.data()))
    return raise(TermCode::kMpaMarker, nullptr);
  const uint32_t size = core::load_be16(plain.data());
  const RxStatus status = on_ulpdu(plain.octets().subspan(mpa::kLengthSize, size), size);
  if (status == RxStatus::kOk)
    position_ = static_cast<uint32_t>(position_ + fpdu.size()) % mpa::kMarkerInterval;
  return status;
}

RxStatus Rx::on_ulpdu(Bytes ulpdu, uint32_t size) {
  const RxStatus status = on_segment(ulpdu, size);
  if (has_to_wait(status)) waiting_ = status;
  // A valid FPDU is enough to let us send, even if it has to wait for a receive.
  if (has_to_wait(status) || (status == RxStatus::kOk && !open_.active)) tell(shared_->first_fpdu);
  return status;
}

RxStatus Rx::on_segment(Bytes ulpdu, uint32_t size) {
  if (ulpdu.size() < 2) return raise(TermCode::kDdpLocalCatastrophic, nullptr);
  Segment segment{ulpdu, size, ddp::is_tagged(ulpdu[0]), 0};
  segment.header_size = segment.tagged ? ddp::kTaggedHeaderSize : ddp::kUntaggedHeaderSize;
  if (ddp::version_of(ulpdu[0]) != ddp::kVersion)  // RFC 5041 7.1
    return raise(
        segment.tagged ? TermCode::kTaggedInvalidVersion : TermCode::kUntaggedInvalidVersion,
        &segment);
  if (ulpdu.size() < segment.header_size) return raise(TermCode::kDdpLocalCatastrophic, nullptr);
  if (rdmap::version_of(ulpdu[1]) != rdmap::kVersion)
    return raise(TermCode::kInvalidRdmapVersion, &segment);
  const Opcode opcode = rdmap::opcode_of(ulpdu[1]);
  if (taken_ == Taken::kAnswers && asks(opcode, segment.payload_size())) {
    open_.dropped = open_.active;
    return RxStatus::kOk;
  }
  return segment.tagged ? on_tagged(segment, opcode) : on_untagged(segment, opcode);
}

// RFC 5040 4.8 and fig. 10: DDP errors and RDMAP errors tied to a segment echo its DDP header; MPA
// and local errors echo nothing.
RxStatus Rx::raise(TermCode code, const Segment* segment, ibv_event_type event) {
  rdmap::Terminate& t = fault_.terminate;
  t = {.code = code};
  if (segment && segment->ulpdu.size() >= segment->header_size) {
    t.has_length = t.has_ddp_header = true;
    t.ddp_segment_length = static_cast<uint16_t>(segment->size);
    t.ddp_header_size = segment->header_size;
    std::memcpy(t.ddp_header, segment->ulpdu.data(), segment->header_size);
  }
  fault_.event = event;
  // The caller may have set a more precise cause.
  if (fault_.cause == core::Cause::kNone)
    fault_.cause = core::cause_of_terminate(core::End::kHere, code);
  ended_ = true;
  end_receive(IBV_WC_GENERAL_ERR, fault_.cause);
  return RxStatus::kFault;
}

void Rx::fail_receive(ibv_wc_status status, core::Cause cause) {
  if (!receiving_) return;
  ibv_wc wc{};
  wc.status = status;
  wc.vendor_err = static_cast<uint32_t>(cause);
  wc.opcode = IBV_WC_RECV;
  complete_receive(wc, true);
}

void Rx::complete_receive(ibv_wc& wc, bool solicited) {
  receiving_ = false;
  wc.wr_id = receive_.wr_id;
  wc.qp_num = shared_->qp_num;
  // Before the completion is visible, as in SendQueue::count_in().
  shared_->counters->completed_receives.add(1);
  if (wc.status != IBV_WC_SUCCESS) shared_->counters->failed_receives.add(1);
  const queue::Completion completion{wc, shared_->recv_source, receive_.frees};
  if (completions_) {
    completions_->add(completion, solicited);
  } else {
    shared_->recv_cq->push(completion, solicited);
  }
  ++completed_;
}

}  // namespace uiw::qp
