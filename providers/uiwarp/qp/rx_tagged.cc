// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tagged messages: RDMA Write and Read Response. RFC 5041 7.1 (tagged), RFC 5040 5.1 and 5.2.
#include <cstring>
#include <utility>

#include "qp/peer_hints.h"
#include "qp/place.h"
#include "qp/rx.h"
#include "queue/scatter.h"

namespace uiw::qp {

using core::TermCode;
using rdmap::Opcode;

RxStatus Rx::on_tagged(const Segment& segment, Opcode opcode) {
  const ddp::TaggedHeader header = ddp::decode_tagged(segment.ulpdu.data());
  switch (opcode) {
    case Opcode::kWrite:
      return on_write(segment, header);
    case Opcode::kReadResponse:
      return on_read_response(segment, header);
    default:
      return raise(TermCode::kUnexpectedOpcode, &segment);
  }
}

RxStatus Rx::on_write(const Segment& segment, const ddp::TaggedHeader& header) {
  if (write_begun_) {
    if (write_dropped_) return skip(segment);
  } else {
    write_octets_ = 0;
    write_dropped_ = false;
    if (segment.payload_size() > 0) {
      write_hint_ = std::exchange(length_hint_, {});
      write_from_ = header.to;
    }
  }
  write_octets_ += segment.payload_size();
  write_begun_ = !header.last;
  write_ended_ = header.last;
  if (segment.payload_size() == 0) {  // RFC 5041 5.2: STag and TO are not checked then
    take_hint(header);
    return RxStatus::kOk;
  }
  mem::LastRegion::Found region;
  RxStatus otherwise;
  if (!find_sink(segment, header.to, segment.payload_size(), region, otherwise)) return otherwise;
  const core::Bytes payload = segment.payload();
  shared_->place(region->memory + (header.to - region->start), payload);
  return payload.size() == segment.payload_size() && header.last ? finish_write() : RxStatus::kOk;
}

// For an empty Write, which may be another uiwarp's hint.
void Rx::take_hint(const ddp::TaggedHeader& header) {
  if (shared_->immediates) take_immediate_hint(header.to);
  if (shared_->acknowledged) take_arrival_hint(header.stag, header.to);
  if (!shared_->long_fpdus) return;
  if (header.to == kCapabilityHint) tell(shared_->peer_takes_long_fpdus);
  length_hint_ = length_hint_of(header.stag, header.to).value_or(length_hint_);
}

void Rx::take_immediate_hint(uint64_t to) {
  if (const std::optional<uint32_t> immediate = immediate_hint_of(to)) immediate_hint_ = immediate;
  if (to != kImmediatesHint) return;
  shared_->peer_immediates.store(PeerImmediates::kTaken, std::memory_order_release);
  news_ = true;
}

// Has the effects of an answer to a question.
void Rx::take_arrival_hint(uint32_t stag, uint64_t to) {
  const std::optional<ArrivalHint> hint = arrival_hint_of(stag, to);
  if (!hint) return;
  shared_->at_peer.next_send.store(hint->next_send, std::memory_order_release);
  shared_->at_peer.writes.store(hint->writes, std::memory_order_release);
  news_ = answered_ = true;
  sends_first_ = false;
}

// False: this segment may not be placed; the caller returns `otherwise`.
bool Rx::find_sink(const Segment& segment, uint64_t to, uint64_t length,
                   mem::LastRegion::Found& region, RxStatus& otherwise) {
  TermCode code = TermCode::kTaggedInvalidStag;
  region = regions_.find(*shared_->memory, ddp::decode_tagged(segment.ulpdu.data()).stag);
  if (region) {
    switch (mem::check_remote(*region, shared_->stream(), to, length, mem::kRemoteWrite)) {
      case mem::Fault::kNone:
        return true;
      case mem::Fault::kProtectionDomain:
        code = TermCode::kTaggedStagNotAssociated;
        break;
      case mem::Fault::kRights:  // RFC 5041 7.2 has no code for rights
        break;
      case mem::Fault::kWrap:
        code = TermCode::kTaggedToWrap;
        break;
      case mem::Fault::kBounds:
        code = TermCode::kTaggedBounds;
        break;
    }
  }
  const uint32_t stag = ddp::decode_tagged(segment.ulpdu.data()).stag;
  region = {};  // a reference through a window must not be held during the search of the table
  explain_access("an RDMA Write", {stag, to, length, mem::kRemoteWrite});
  otherwise = undeliverable(code, segment, Loss::kNoAccess, IBV_EVENT_QP_ACCESS_ERR);
  return false;
}

// The last segment of a Write was placed.
RxStatus Rx::finish_write() {
  std::atomic<uint32_t>& writes = shared_->here.writes;
  writes.store(writes.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  note_unasked(true);
  // A program that sleeps on a separate send CQ with no completion due can only be waiting for the
  // peer's Write: doc/decisions/003-write-wakes-idle-sender.md. That does not hold for a program
  // that has sent nothing yet, or that arms the receive CQ repeatedly.
  const qp::SendQueue& sends = *shared_->send_queue;
  if (shared_->send_cq != shared_->recv_cq && !sends.completion_due() && sends.posted() > 0 &&
      shared_->recv_cq->arms() <= 1)
    shared_->send_cq->wake(shared_->send_source);
  return RxStatus::kOk;
}

// RFC 5040 5.2.2: a response may be checked against its request; this is always done here.
RxStatus Rx::on_read_response(const Segment& segment, const ddp::TaggedHeader& header) {
  const OutstandingRequest* read = shared_->outstanding_requests.front();
  if (!read) return raise(TermCode::kUnexpectedOpcode, &segment);
  // RFC 7306 section 7: an atomic that came first is answered first.
  if (read->atomic)
    return raise_response(TermCode::kUnexpectedOpcode, segment, IBV_WC_BAD_RESP_ERR);
  if (header.stag != read->cookie)
    return raise_response(TermCode::kTaggedInvalidStag, segment, IBV_WC_BAD_RESP_ERR);
  // We sent sink TO 0, so TO is the position in the message. Too many bytes, a gap and an early end
  // are errors.
  const uint64_t left = read->length - response_octets_;
  const bool fits =
      segment.payload_size() <= left && (!header.last || segment.payload_size() == left);
  if (header.to != response_octets_ || (!fits && !asks_nothing(*read)))
    return raise_response(TermCode::kTaggedBounds, segment, IBV_WC_BAD_RESP_ERR);
  const RxStatus placed = place_response(segment.payload());
  if (placed != RxStatus::kOk || segment.payload().size() != segment.payload_size()) return placed;
  return finish_read_response(header);
}

RxStatus Rx::place_response(core::Bytes payload) {
  if (payload.empty()) return RxStatus::kOk;
  const OutstandingRequest& read = *shared_->outstanding_requests.front();
  if (asks_nothing(read)) {
    response_octets_ += payload.size();
    return RxStatus::kOk;
  }
  const SendWqe& wr = shared_->send_queue->slot(read.slot);
  if (!scatter(shared_->pd, wr.sges(), wr.sge_count, response_octets_, payload))
    return raise_sink(read.slot, response_octets_ + payload.size());
  response_octets_ += payload.size();
  return RxStatus::kOk;
}

RxStatus Rx::finish_read_response(const ddp::TaggedHeader& header) {
  if (!header.last) return RxStatus::kOk;
  response_octets_ = 0;
  finish_request();
  return RxStatus::kOk;
}

// The oldest outstanding request is answered.
void Rx::finish_request() {
  const OutstandingRequest& request = *shared_->outstanding_requests.front();
  if (request.slot != kNoSlot)
    shared_->send_queue->slot(request.slot).done.store(true, std::memory_order_release);
  // The peer's hint would have come before its answer.
  if (request.asks_immediates &&
      shared_->peer_immediates.load(std::memory_order_relaxed) == PeerImmediates::kUnknown)
    shared_->peer_immediates.store(PeerImmediates::kRefused, std::memory_order_release);
  // RFC 5040 5.5(12): the peer answered after it had placed and delivered everything that was sent
  // before the request.
  if (shared_->acknowledged) shared_->arrived.store(request.behind, std::memory_order_release);
  shared_->outstanding_requests.pop();
  ++completed_;
  news_ = answered_ = true;
  sends_first_ = false;
}

RxStatus Rx::raise_response(TermCode code, const Segment& segment, ibv_wc_status status) {
  const uint64_t slot = shared_->outstanding_requests.front()->slot;
  raise(code, &segment);
  fault_.failed_slot = slot;
  fault_.failed_status = status;
  return RxStatus::kFault;
}

// The answer cannot be stored: an error of this side, so nothing that the peer sent is echoed. The
// answer acknowledges what was sent before its request all the same.
RxStatus Rx::raise_sink(uint64_t slot, uint64_t octets) {
  if (shared_->acknowledged)
    shared_->arrived.store(shared_->outstanding_requests.front()->behind,
                           std::memory_order_release);
  fault_.cause = explain_answer(shared_->send_queue->slot(slot), octets);
  raise(TermCode::kLocalCatastrophic, nullptr, IBV_EVENT_QP_ACCESS_ERR);
  fault_.blame = RxFault::Blame::kProgram;
  fault_.failed_slot = slot;
  fault_.failed_status = IBV_WC_LOC_PROT_ERR;
  return RxStatus::kFault;
}

}  // namespace uiw::qp
