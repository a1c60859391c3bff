// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Chooses what to send next, and completes requests. Building the FPDUs: tx_fpdu.cc, tx_small.cc.
#include "qp/tx.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/instrumented.h"
#include "core/tuning.h"
#include "mpa/markers.h"
#include "qp/long_fpdus.h"
#include "qp/lost_peer.h"
#include "qp/opcode_rules.h"
#include "qp/peer_hints.h"
#include "qp/stagger.h"

namespace uiw::qp {

using core::tuning::kLargePayload;

namespace {

// An FPDU needs a header piece, one piece per SGE and a trailer piece. The room demanded beyond the
// copied payload always suffices for an arrival hint and a Terminate as well.
constexpr uint32_t kPiecesPerFpdu = queue::kMaxSge + 4;
constexpr uint32_t kArenaBesidesPayload = 256;
static_assert(mpa::marked_size(0, mpa::fpdu_size(mpa::kMaxMulpdu)) + kArenaBesidesPayload <=
              TxBatch::kArena);

// With CRC each side reads every byte once more. Over loopback an FPDU could have 64 KiB. It is
// kept so small that it is still in the first-level cache for that: 1 MiB Writes went from 5.7 to
// 7.3 GB/s. RFC 5044 2: ULPDUs are "of MULPDU size or smaller".
constexpr uint32_t kMaxUlpduWithCrc = 16 * 1024;

// TCP cuts the bytes of one call into packets of at most this size, made of whole segments, and the
// remainder makes one more. A batch ends within the 16th packet: 1 MiB messages otherwise took 17
// packets each, of which the last was nearly empty.
constexpr uint32_t kPacket = 65200, kPacketsPerBatch = 16;
// Fewer if all payload is copied: a queue pair with a full socket holds that much memory, and it
// should still be in the second-level cache when the kernel copies it again.
constexpr uint32_t kPacketsPerCopiedBatch = 8;
static_assert(kPacketsPerCopiedBatch * kPacket + kArenaBesidesPayload <= TxBatch::kArena);

// A length hint is sent only if at least this much follows the first segment, with a header.
constexpr uint32_t kMinHintedRest = kLargePayload + ddp::kUntaggedHeaderSize;

}  // namespace

Tx::~Tx() {
  drop_pieces();
}

void Tx::start(Shared& shared, uint32_t emss, const core::SipKey& secret) {
  shared_ = &shared;
  send_msn_ = request_msn_ = atomic_response_msn_ = told_.next_send = shared.first_msn;
  crc_ = shared.agreement.crc;
  markers_ = shared.agreement.tx_markers;
  secret_ = secret;
  set_emss(emss);
  if (shared.agreement.initiator && shared.agreement.rtr != mpa::Rtr::kNone)
    rtr_ = RtrState::kPending;
  // A peer that answers no Reads cannot be asked.
  if (shared.acknowledged && shared.agreement.ord > 0) acknowledgements_ = Acknowledgements::kAsk;
}

uint32_t Tx::largest_ulpdu() const {
  return crc_ ? kMaxUlpduWithCrc : mpa::kMaxMulpdu;
}

void Tx::set_emss(uint32_t emss) {
  emss_ = emss;
  const uint32_t most = largest_ulpdu();
  if (long_fpdus_) emss = long_fpdus::several_segments(emss, most);
  mulpdu_ = std::min(mpa::mulpdu(emss, markers_), most);
  const uint32_t packet = emss_ == 0 ? kPacket : long_fpdus::whole_segments(emss_, kPacket);
  const uint32_t packets = copies_all() ? kPacketsPerCopiedBatch : kPacketsPerBatch;
  batch_limit_ = packets * packet - mpa::fpdu_size(mulpdu_);
  largest_copy_ =
      copies_all() ? mpa::marked_size(0, mpa::fpdu_size(mulpdu_)) : core::tuning::kMostCopied;
  small_ = std::min(largest_copy_, mulpdu_ - ddp::kUntaggedHeaderSize);
}

// Whether the capability hint must precede a message of `length` bytes. (It cannot go inside: RFC
// 5041 5.3.) True only if the message would then have fewer FPDUs, get a length hint or be
// staggered.
bool Tx::needs_capability_hint(uint64_t length) const {
  if (capability_hint_sent_ || !shared_->long_fpdus) return false;
  if (worth_staggering(length)) return true;
  if (length <= mulpdu_ - ddp::kUntaggedHeaderSize) return false;
  return long_fpdus::several_segments(emss_, largest_ulpdu()) > emss_ || worth_length_hint(length);
}

// With CRC or markers the receiver places nothing directly.
bool Tx::worth_length_hint(uint64_t length) const {
  return !crc_ && !markers_ && mulpdu_ >= kMinHintedRest && length >= mulpdu_ + kMinHintedRest;
}

// Payload that is copied anyway is well aligned in the arena. With a small EMSS, FPDUs begin where
// segments do, which staggering would break.
bool Tx::worth_staggering(uint64_t length) const {
  return shared_->stagger && !copies_all() && emss_ >= kLargePayload && length >= kLargePayload;
}

// Whether message_ should begin further on in the stream. Checked only at the beginning of a batch:
// later positions are not predictable.
bool Tx::to_stagger(const SendWqe& wr, uint32_t header_size) const {
  if (!long_fpdus_ || message_.offset > 0 || batch_->total() >= stagger::kDistance) return false;
  if (!worth_staggering(message_.length) || wr.is_inline) return false;
  const ibv_sge& first = wr.sges()[0];
  return first.length >= kLargePayload &&
         stagger::stumbles(batch_->total() + mpa::kLengthSize + header_size, first.addr);
}

// Whether there is room for an FPDU with `copied` bytes of copied payload.
bool Tx::has_room(uint32_t copied) const {
  return !batch_ || batch_->has_room(kPiecesPerFpdu, copied + kArenaBesidesPayload, batch_limit_);
}

bool Tx::fill() {
  left_ = {};
  if (pending()) return true;
  if (fault_.raised || !shared_) return false;
  new_batch_ = true;
  while (has_room(largest_copy_)) {
    if (message_.kind == Message::kNone && !pick()) break;
    if (message_.kind != Message::kNone && !build_segment()) break;
  }
  regions_.release();
  if (batch_ && batch_->empty()) drop_pieces();
  return pending();
}

std::span<const iovec> Tx::pieces() const {
  if (!batch_) return {};
  return {batch_->pieces(), batch_->piece_count()};
}

void Tx::consume(uint64_t octets) {
  batch_->consume(octets, [this](uint64_t slot) {
    shared_->send_queue->slot(slot).done.store(true, std::memory_order_relaxed);
  });
  if (batch_->empty()) {
    rtr_in_batch_ = false;
    drop_pieces();
  }
}

bool Tx::release_regions() {
  return !holds_regions() || batch_->detach();
}

// Chooses the next message. One that always fits one FPDU is built at once. False: nothing may be
// sent now.
bool Tx::pick() {
  if (rtr_ == RtrState::kPending) {
    // RFC 6581 9.2: the RTR is the initiator's first FPDU, nothing before it.
    if (!ensure_batch()) return false;
    build_rtr();
    return true;
  }
  if (!run_local_requests() || !may_send()) return false;
  if (empty_write_) {
    if (!ensure_batch()) return false;
    build_empty_write(kRtrStag, 0);
    empty_write_ = false;
    return true;
  }
  if (std::exchange(tells_arrivals_, false) && shared_->here.load() != told_)
    return build_arrival_hint();
  if (!long_fpdus_ && shared_->peer_takes_long_fpdus.load(std::memory_order_acquire)) {
    long_fpdus_ = true;
    set_emss(emss_);
    // Answers the hint; but not once closing has begun, as the FIN may have been sent.
    if (!capability_hint_sent_ && start_limit_ == kNoSlot) return build_capability_hint();
  }

  const InboundRequest* request = shared_->inbound_requests.front();
  if (request && leave_answer()) return false;
  if (request && owes_immediates_hint()) return build_immediates_hint();
  // The answer to an empty Read completes the peer's earlier messages, so it goes before our own
  // messages.
  if (request && request->is_empty_read()) return begin_response(*request);
  // Asks about the previous batch: in a continuous stream no message is ever the last.
  if (std::exchange(new_batch_, false) && wants_acknowledgement() && !leave_question())
    return ask_acknowledgement();
  response_turn_ = !response_turn_;
  if (response_turn_ && request) return begin_response(*request);
  if (pick_work_request()) return true;
  if (fault_.raised) return false;
  if (request) return begin_response(*request);
  return wants_acknowledgement() && !leave_question() && ask_acknowledgement();
}

// RFC 5040 5.5(20), RFC 7306 section 7: Reads and atomics are answered in the order of their
// arrival.
bool Tx::begin_response(const InboundRequest& request) {
  if (!request.atomic) {
    if (needs_capability_hint(request.read.size)) return build_capability_hint();
    message_ = {.kind = Message::kReadResponse, .length = request.read.size};
    return true;
  }
  if (!ensure_batch()) return false;
  build_atomic_response(request.answer);
  end_response();
  return true;
}

// RFC 5044 7.1.2(4): the responder sends nothing until it has received a valid FPDU.
bool Tx::may_send() const {
  return shared_->agreement.initiator || shared_->first_fpdu.load(std::memory_order_acquire);
}

bool Tx::startable() const {
  const SendQueue& queue = *shared_->send_queue;
  return !found_.any() && queue.has_unstarted() && queue.started() < start_limit_;
}

// Bindings and local invalidations send nothing. They take effect before anything posted after them
// is sent (ibv_bind_mw), and also while nothing may be sent yet. False: fault_ was raised.
bool Tx::run_local_requests() {
  if (found_.any()) return !raise_found();
  SendQueue& queue = *shared_->send_queue;
  bool ran = false;
  while (startable() && rule_of(queue.first_unstarted().opcode).local) {
    SendWqe& wr = queue.first_unstarted();
    if (wr.fence && shared_->outstanding_requests.size() > 0) break;  // conformance OC-13
    if (const core::Cause cause = run(wr); cause != core::Cause::kNone) {
      refuse(wr, IBV_WC_MW_BIND_ERR, cause);
      return !fault_.raised;
    }
    queue.start();
    wr.done.store(true, std::memory_order_relaxed);
    ran = true;
  }
  if (ran) retire();
  return true;
}

// Carries out a local request. kNone: success.
core::Cause Tx::run(const SendWqe& wr) {
  using core::Cause;
  if (wr.opcode == IBV_WR_BIND_MW) {
    switch (shared_->memory->bind(shared_->stream(), wr.binding())) {
      case 0:
        return Cause::kNone;
      case EPERM:
        return Cause::kBindOfOtherDomain;
      case EACCES:
        return Cause::kBindNotAllowed;
      case EBUSY:
        return Cause::kBindBound;
      default:
        return Cause::kBindInvalid;
    }
  }
  switch (shared_->memory->invalidate(shared_->stream(), wr.rkey)) {
    case mem::Invalidation::kDone:
      return Cause::kNone;
    case mem::Invalidation::kNotAssociated:
      return Cause::kInvalidateForeign;
    case mem::Invalidation::kNotPossible:
      break;
  }
  return Cause::kInvalidateImpossible;
}

bool Tx::pick_work_request() {
  SendQueue& queue = *shared_->send_queue;
  if (!startable()) return false;
  SendWqe& wr = queue.first_unstarted();
  const OpcodeRule& rule = rule_of(wr.opcode);
  // It waited for its fence a moment ago in run_local_requests(). If the fence has opened since,
  // the answer that opened it makes the sender run again.
  if (rule.local) return false;
  const uint32_t unanswered = shared_->outstanding_requests.size();
  // Conformance OC-13: a fenced WR waits until all earlier Reads and atomics are complete.
  if (wr.fence && unanswered > 0) return false;
  // RFC 5040 6.1, RFC 7306 5.2: at most ORD may be outstanding; later WRs wait in order.
  const uint32_t ord = shared_->agreement.ord;
  if (rule.answered && unanswered >= ord && ord > 0) return false;
  if (rule.answered && may_leave_.reads && leave_reads(unanswered)) return false;
  if (wr.opcode == IBV_WR_SEND_WITH_IMM &&
      shared_->peer_immediates.load(std::memory_order_acquire) != PeerImmediates::kTaken)
    return ask_immediates();
  if (owes_arrival_hint(wr)) return build_arrival_hint();
  if (is_small(wr)) return build_small_messages();
  if (!rule.answered && needs_capability_hint(wr.length)) return build_capability_hint();
  return start_work_request(wr);
}

// True: all WRs that could be started are Reads or atomics, and few compared to the `unanswered`
// ones. If not, all of them are sent.
bool Tx::leave_reads(uint32_t unanswered) {
  SendQueue& queue = *shared_->send_queue;
  const uint64_t first = queue.started();
  const uint64_t startable =
      std::min<uint64_t>(queue.posted() - first, shared_->agreement.ord - unanswered);
  bool few = startable > 0 && startable < core::tuning::kEnoughCoalesced &&
             startable * core::tuning::kFewRequests <= unanswered;
  for (uint64_t i = 0; few && i < startable; ++i)
    few = rule_of(queue.slot(first + i).opcode).answered;
  may_leave_.reads = left_.reads = few;
  return few;
}

bool Tx::start_work_request(SendWqe& wr) {
  if (!ensure_batch()) return false;
  if (!check_local_sges(wr)) return false;
  const OpcodeRule& rule = rule_of(wr.opcode);
  // A peer that granted no Reads can never answer this one.
  if (rule.answered && shared_->agreement.ord == 0) {
    refuse(wr, IBV_WC_LOC_QP_OP_ERR, core::Cause::kNoReadsGranted);
    return false;
  }
  const uint64_t slot = shared_->send_queue->start();
  if (rule.answered) {
    start_request(wr, slot);
    return true;
  }
  has_started(wr, slot + 1);
  number(wr);
  const Message::Kind kind = rule.remote == Remote::kRdma ? Message::kWrite : Message::kSend;
  message_ = {.kind = kind, .slot = slot, .length = wr.length};
  message_.length_hint = long_fpdus_ && worth_length_hint(wr.length);
  message_.immediate_hint = rule.immediate && kind == Message::kSend;
  return true;
}

void Tx::start_request(SendWqe& wr, uint64_t slot) {
  const bool atomic = rule_of(wr.opcode).remote == Remote::kAtomic;
  wr.cookie = next_cookie();
  wr.msn = request_msn_;
  shared_->outstanding_requests.push({slot, wr.cookie, wr.length, atomic, slot});
  asked_ = slot;
  if (atomic) {
    build_atomic_request(wr);
  } else {
    build_read_request({wr.cookie, 0, wr.length, wr.rkey, wr.remote_addr});
  }
}

void Tx::complete(SendWqe& wr, ibv_wc_status status) {
  const bool told = wr.signaled || status != IBV_WC_SUCCESS;
  if (!told) return shared_->send_queue->retire();
  ibv_wc wc{};
  wc.wr_id = wr.wr_id;
  wc.status = status;
  if (status != IBV_WC_SUCCESS) {
    wc.vendor_err = static_cast<uint32_t>(shared_->end.load(std::memory_order_relaxed));
    shared_->counters->failed_sends.add(1);
  }
  wc.opcode = rule_of(wr.opcode).completes_as;
  wc.byte_len = wr.length;
  wc.qp_num = shared_->qp_num;
  shared_->send_queue->retire();
  // Tells instruments which WR it is (uiwarp_cq_poll()).
  if (core::instrumented.load(std::memory_order_relaxed))
    wc.src_qp = static_cast<uint32_t>(shared_->send_queue->retired());
  // The thread that polls the completion may post at once: after push() the slot may hold another
  // WR.
  shared_->send_cq->push({wc, shared_->send_source, shared_->send_queue->retired()},
                         status != IBV_WC_SUCCESS);
}

void Tx::retire() {
  SendQueue& queue = *shared_->send_queue;
  while (queue.has_unretired()) {
    SendWqe& wr = queue.first_unretired();
    if (!is_done(queue.retired(), wr)) return;
    complete(wr, IBV_WC_SUCCESS);
  }
}

bool Tx::idle() const {
  return !pending() && message_.kind == Message::kNone && rtr_ == RtrState::kNone && !startable() &&
         !shared_->send_queue->has_unretired() && shared_->inbound_requests.size() == 0;
}

bool Tx::owes_octets() const {
  return pending() || message_.kind != Message::kNone || shared_->inbound_requests.size() > 0;
}

bool Tx::owes_answers() const {
  return answer_in_batch_ || shared_->inbound_requests.size() > 0;
}

bool Tx::abandon(const Cause& cause) {
  const rdmap::Terminate* send = cause.send;
  fault_.raised = true;
  const bool began_message = pending() || message_.kind != Message::kNone;
  message_ = {};
  rtr_ = RtrState::kNone;
  empty_write_ = false;
  if (batch_) {
    batch_->cut_to_current_fpdu();
    // Out of memory: the stream cannot be continued at an FPDU boundary, so it ends without a
    // Terminate.
    if (!batch_->detach()) {
      drop_pieces();
      send = nullptr;
    }
  }
  // Not inside a message, which is cut off here.
  if (!began_message) build_acknowledgements();
  if (send) {
    build_last_arrival_hint(began_message);
    append_terminate(*send);
  }
  if (batch_ && batch_->empty()) drop_pieces();
  retire();
  bool blamed = cause.received && blame(*cause.received);
  if (cause.failed_slot != kNoSlot) {
    shared_->send_queue->fail(cause.failed_slot, cause.failed_status);
    blamed = true;
  }
  flush(*shared_);
  return blamed;
}

void Tx::flush(Shared& shared) {
  shared_ = &shared;
  SendQueue& queue = *shared.send_queue;
  for (;;) {
    if (!queue.has_unretired()) {
      if (!queue.has_unstarted()) return;
      queue.start();
    }
    SendWqe& wr = queue.first_unretired();
    ibv_wc_status status = wr.status;
    // After the first WR that failed all later ones are flushed, even those already sent.
    if (status == IBV_WC_SUCCESS && (flushing_ || !is_done(queue.retired(), wr)))
      status = IBV_WC_WR_FLUSH_ERR;
    if (status != IBV_WC_SUCCESS && !flushing_) explain_lost_peer(shared);
    flushing_ = flushing_ || status != IBV_WC_SUCCESS;
    complete(wr, status);
  }
}

bool Tx::ensure_batch() {
  if (!batch_) batch_ = TxBatchPool::take();
  if (batch_) return true;
  raise_no_memory();
  return false;
}

void Tx::raise_no_memory() {
  fault_ = {.raised = true, .terminate = {.code = core::TermCode::kLocalCatastrophic}};
}

void Tx::drop_pieces() {
  if (!batch_) return;
  position_ = static_cast<uint32_t>(position_ + batch_->total()) % mpa::kMarkerInterval;
  TxBatchPool::give(batch_);
  batch_ = nullptr;
  answer_in_batch_ = false;
}

}  // namespace uiw::qp
