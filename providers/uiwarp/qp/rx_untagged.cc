// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Untagged messages: Send, Immediate Data, Read Request, Terminate. RFC 5041 7.1 (untagged), RFC
// 5040 4 and 5, RFC 7306 6. Atomics: rx_atomic.cc.
#include <algorithm>
#include <cstring>
#include <utility>

#include "qp/place.h"
#include "qp/remote_protection.h"
#include "qp/rx.h"
#include "queue/scatter.h"
#include "rdmap/immediate.h"

namespace uiw::qp {

using core::TermCode;
using rdmap::Opcode;

namespace {

bool is_send(Opcode opcode) {
  return opcode >= Opcode::kSend && opcode <= Opcode::kSendSeInvalidate;
}
bool is_immediate(Opcode opcode) {
  return opcode == Opcode::kImmediate || opcode == Opcode::kImmediateSe;
}
bool has_invalidate(Opcode opcode) {
  return opcode == Opcode::kSendInvalidate || opcode == Opcode::kSendSeInvalidate;
}
bool has_solicited_event(Opcode opcode) {
  return opcode == Opcode::kSendSe || opcode == Opcode::kSendSeInvalidate;
}

}  // namespace

RxStatus Rx::on_untagged(const Segment& segment, Opcode opcode) {
  const ddp::UntaggedHeader header = ddp::decode_untagged(segment.ulpdu.data());
  uint32_t queue;
  if (is_send(opcode) || is_immediate(opcode)) {
    queue = ddp::kQnSend;
  } else if (opcode == Opcode::kReadRequest || opcode == Opcode::kAtomicRequest) {
    queue = ddp::kQnRequest;
  } else if (opcode == Opcode::kTerminate) {
    queue = ddp::kQnTerminate;
  } else if (opcode == Opcode::kAtomicResponse) {
    queue = ddp::kQnAtomicResponse;
  } else {
    // Unassigned, or a tagged opcode with T=0.
    return raise(TermCode::kUnexpectedOpcode, &segment);
  }
  // RFC 5041 7.1: the queue must exist; and it must be the one this opcode belongs to.
  if (header.qn != queue) return raise(TermCode::kUntaggedInvalidQn, &segment);
  if (opcode == Opcode::kTerminate) return on_terminate(segment, header);
  if (opcode == Opcode::kAtomicResponse) return on_atomic_response(segment, header);
  if (is_immediate(opcode)) return on_immediate(segment, opcode, header);
  // The message is not the immediate data of a Write: the peer's last Write, if any, is over.
  write_ended_ = false;
  if (opcode == Opcode::kReadRequest) return on_read_request(segment, header);
  if (opcode == Opcode::kAtomicRequest) return on_atomic_request(segment, header);
  return on_send(segment, opcode, header);
}

// Asks once for all bytes that were received together, and again after one of our requests was
// answered.
bool Rx::sends_first() {
  if (sends_first_ || !shared_->sends_first) return true;
  tell_completions();
  regions_.release();
  return sends_first_ = shared_->sends_first->sends_first(std::exchange(answered_, false));
}

// Takes one receive per message, with its first segment; an empty message needs one too
// (conformance DV-08). False: there is none for this segment; the caller returns `otherwise`.
bool Rx::take_receive(const Segment& segment, Opcode opcode, RxStatus& otherwise) {
  if (receiving_) {
    if (opcode == send_opcode_) return true;
    otherwise = raise(TermCode::kUnexpectedOpcode, &segment);
    return false;
  }
  if (!sends_first()) {
    otherwise = RxStatus::kWantSender;
    return false;
  }
  bool below_limit = false;
  if (!shared_->receive_queue->take(receive_, below_limit)) {
    otherwise = wait_for_receive_
                    ? RxStatus::kWantReceive
                    : undeliverable(TermCode::kUntaggedNoBuffer, segment, Loss::kNoReceive);
    return false;
  }
  limit_reached_ = limit_reached_ || below_limit;
  receiving_ = progress_ = true;
  send_octets_ = 0;
  send_opcode_ = opcode;
  if (segment.payload_size() > 0) send_hint_ = std::exchange(length_hint_, {});
  if (is_send(opcode)) send_immediate_ = std::exchange(immediate_hint_, {});
  return true;
}

RxStatus Rx::on_send(const Segment& segment, Opcode opcode, const ddp::UntaggedHeader& header) {
  if (header.msn != send_msn_) return on_other_msn(segment, header);
  RxStatus otherwise;
  if (!take_receive(segment, opcode, otherwise)) return otherwise;
  if (header.mo != send_octets_) return raise(TermCode::kUntaggedInvalidMo, &segment);
  // RFC 5041 5.2: a message has fewer than 2^32 bytes; beyond that MO would wrap.
  if (segment.payload_size() > std::min<uint64_t>(receive_.length, UINT32_MAX) - send_octets_) {
    explain_short_receive(segment, header.last);
    fault_.cause = core::Cause::kReceiveTooShort;
    end_receive(IBV_WC_LOC_LEN_ERR, fault_.cause);
    return undeliverable(TermCode::kUntaggedTooLong, segment, Loss::kTooLong);
  }
  const RxStatus placed = place_send(segment, segment.payload());
  if (placed != RxStatus::kOk || segment.payload().size() != segment.payload_size()) return placed;
  return header.last ? finish_send(segment, opcode, header) : RxStatus::kOk;
}

// RFC 5040 4.8: a receive that names memory it may not use is, for the peer, an error "localized to
// RDMAP Stream". The Terminate echoes the segment that found it.
RxStatus Rx::place_send(const Segment& segment, core::Bytes payload) {
  if (!scatter(shared_->receive_pd, receive_.sges, receive_.sge_count, send_octets_, payload)) {
    fault_.cause = explain_receive(send_octets_ + payload.size());
    fail_receive(IBV_WC_LOC_PROT_ERR, fault_.cause);
    fault_.blame = RxFault::Blame::kProgram;
    return raise(TermCode::kStreamCatastrophic, &segment, IBV_EVENT_QP_ACCESS_ERR);
  }
  send_octets_ += static_cast<uint32_t>(payload.size());
  return RxStatus::kOk;
}

bool Rx::scatter(uint32_t pd, const ibv_sge* sges, uint32_t count, uint64_t offset,
                 core::Bytes payload) {
  if (shared_->place == qp::place) [[likely]]
    return queue::scatter(regions_, *shared_->memory, pd, sges, count, offset, payload);
  return queue::scatter_by(shared_->place, regions_, *shared_->memory, pd, sges, count, offset,
                           payload);
}

RxStatus Rx::finish_send(const Segment& segment, Opcode opcode, const ddp::UntaggedHeader& header) {
  ibv_wc wc{};
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = IBV_WC_RECV;
  wc.byte_len = send_octets_;
  if (send_immediate_) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = *send_immediate_;
  }
  // No uiwarp sends an immediate hint and an Invalidate together. If a peer does, the Invalidate
  // wins: an ibv_wc has room for one.
  if (has_invalidate(opcode)) {
    // RFC 5040 5.3: verify that the STag is associated with this stream, invalidate it, then
    // deliver.
    const mem::Invalidation result =
        shared_->memory->invalidate(shared_->stream(), header.invalidate_stag);
    if (result != mem::Invalidation::kDone) {
      const bool foreign = result == mem::Invalidation::kNotAssociated;
      explain_invalidation(header.invalidate_stag, foreign);
      fault_.cause = foreign ? core::Cause::kInvalidateForeign : core::Cause::kInvalidateImpossible;
      fail_receive(IBV_WC_REM_INV_REQ_ERR, fault_.cause);
      // RFC 5040 fig. 9 has a code in two error types (conformance 1.11 A6).
      return raise(
          foreign ? TermCode::kRemoteCannotInvalidate : TermCode::kOperationCannotInvalidate,
          &segment, IBV_EVENT_QP_ACCESS_ERR);
    }
    wc.wc_flags = IBV_WC_WITH_INV;
    wc.invalidated_rkey = header.invalidate_stag;
  }
  // Counted here: a Send whose invalidation is refused has not arrived.
  shared_->here.next_send.store(++send_msn_, std::memory_order_release);
  note_unasked(true);
  complete_receive(wc, has_solicited_event(opcode));
  return RxStatus::kOk;
}

// RFC 7306 6.3. The receive's SGEs are not written (conformance IM-09).
RxStatus Rx::on_immediate(const Segment& segment, Opcode opcode,
                          const ddp::UntaggedHeader& header) {
  if (header.msn != send_msn_) return raise(TermCode::kUntaggedMsnRange, &segment);
  if (write_ended_ && write_dropped_) return skip(segment);  // its Write was dropped
  RxStatus otherwise;
  if (!take_receive(segment, opcode, otherwise)) return otherwise;
  if (header.mo != 0 || !header.last) return raise(TermCode::kUntaggedInvalidMo, &segment);
  if (segment.payload().size() != rdmap::kImmediateSize)
    return raise(TermCode::kRemoteOperationUnspecified, &segment);
  shared_->here.next_send.store(++send_msn_, std::memory_order_release);
  note_unasked(true);
  ibv_wc wc{};
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  wc.wc_flags = IBV_WC_WITH_IMM;
  wc.imm_data = rdmap::decode_immediate(segment.payload().data());
  // The Immediate Data message does not carry the length of its Write (conformance 3.1).
  if (write_ended_)
    wc.byte_len = static_cast<uint32_t>(std::min<uint64_t>(write_octets_, UINT32_MAX));
  write_ended_ = false;
  complete_receive(wc, opcode == Opcode::kImmediateSe);
  return RxStatus::kOk;
}

RxStatus Rx::on_read_request(const Segment& segment, const ddp::UntaggedHeader& header) {
  if (header.msn != request_msn_) return raise(TermCode::kUntaggedMsnRange, &segment);
  // RFC 5040 5.2.2: the peer may have at most IRD requests outstanding.
  if (shared_->inbound_requests.size() >= shared_->agreement.ird) {
    explain_too_many_requests();
    return raise(TermCode::kUntaggedNoBuffer, &segment, IBV_EVENT_QP_REQ_ERR);
  }
  if (header.mo != 0 || !header.last) return raise(TermCode::kUntaggedInvalidMo, &segment);
  // RFC 5040 5.2.1: the request consists of its header only.
  if (segment.payload().size() != rdmap::kReadRequestSize)
    return raise(TermCode::kRemoteOperationUnspecified, &segment);
  InboundRequest inbound;
  inbound.read = rdmap::decode_read_request(segment.payload().data());
  std::memcpy(inbound.ddp_header, segment.ulpdu.data(), ddp::kUntaggedHeaderSize);
  const rdmap::ReadRequest& read = inbound.read;
  if (read.size > 0) {  // RFC 5040 5.2.1: an empty Read is not validated
    mem::RegionRef region = shared_->memory->find(read.source_stag);
    const auto refuse = [&](TermCode code) {
      region.reset();  // a reference through a window must not be held during the search of the
                       // table
      explain_access("an RDMA Read",
                     {read.source_stag, read.source_to, read.size, mem::kRemoteRead});
      return raise_read(code, segment);
    };
    if (!region) return refuse(TermCode::kRemoteInvalidStag);
    const mem::Fault fault =
        mem::check_remote(*region, shared_->stream(), read.source_to, read.size, mem::kRemoteRead);
    if (fault != mem::Fault::kNone) return refuse(remote_protection_code(fault));
  }
  // Only a uiwarp's question: an RTR frame is the first FPDU, and a program's empty Read names a
  // region.
  if (read.size == 0 && read.source_stag == kRtrStag &&
      shared_->first_fpdu.load(std::memory_order_relaxed))
    shared_->peer_asks.store(true, std::memory_order_relaxed);
  return accept(inbound);
}

// A valid Read or Atomic Request: transmit answers it, which acknowledges what arrived before it.
RxStatus Rx::accept(InboundRequest& inbound) {
  ++request_msn_;
  inbound.arrivals = shared_->here.load();
  shared_->inbound_requests.push(inbound);
  // Behind the push: a process that ends looks for an answer that is due once the peer has asked.
  note_unasked(false);
  news_ = true;
  return RxStatus::kOk;
}

// RFC 5040 7.1(2): a protection error of a Read Request echoes its RDMAP header as well.
RxStatus Rx::raise_read(TermCode code, const Segment& segment) {
  raise(code, &segment, IBV_EVENT_QP_ACCESS_ERR);
  fault_.terminate.has_read_header = true;
  std::memcpy(fault_.terminate.read_header, segment.payload().data(), rdmap::kReadRequestSize);
  return RxStatus::kFault;
}

// RFC 5040 5.4: any message on queue 2 ends the stream, even a malformed one. It is not answered,
// so that two ends never terminate each other in turn.
RxStatus Rx::on_terminate(const Segment& segment, const ddp::UntaggedHeader&) {
  rdmap::decode(segment.payload(), terminate_);
  ended_ = true;
  fail_receive(IBV_WC_WR_FLUSH_ERR, core::cause_of_terminate(core::End::kPeer, terminate_.code));
  return RxStatus::kTerminated;
}

}  // namespace uiw::qp
