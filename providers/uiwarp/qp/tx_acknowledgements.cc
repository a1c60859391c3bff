// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Acknowledged completions: a Send or Write completes when the peer has received or placed it, not
// when TCP has taken it. The question is an empty RDMA Read sent behind it. Every iWARP peer
// answers that, but only after it has processed what came earlier (RFC 5040 5.5(12)). A Read or
// atomic of the program serves as well. doc/decisions/021-acknowledged-completions.md
//
// For the same reason empty Reads of the peer are answered before anything else.
#include "core/tuning.h"
#include "qp/opcode_rules.h"
#include "qp/tx.h"

namespace uiw::qp {

// Only a few questions are outstanding, so that a continuous stream gets one answer per round trip,
// not one per message.
bool Tx::wants_acknowledgement() const {
  const uint32_t outstanding = shared_->outstanding_requests.size();
  return acknowledgements_ == Acknowledgements::kAsk && unasked_ > asked_ &&
         outstanding < core::tuning::kMostAcknowledgements && outstanding < shared_->agreement.ord;
}

bool Tx::ask_acknowledgement() {
  if (!ensure_batch()) return false;
  build_question({});
  return true;
}

// Builds an empty Read. Its answer is an acknowledgement, whatever else it was sent for.
void Tx::build_question(OutstandingRequest question) {
  asked_ = shared_->send_queue->started();
  question.cookie = next_cookie();
  question.behind = asked_;
  shared_->outstanding_requests.push(question);
  build_read_request({question.cookie, 0, 0, kRtrStag, 0});
}

// Defers the answer to an empty Read if it is the only thing to send. If the program answers the
// peer's message soon, both go in one call.
bool Tx::leave_answer() {
  left_.answers = may_leave_.answers && shared_->inbound_requests.front()->is_empty_read() &&
                  shared_->inbound_requests.size() < core::tuning::kMostAcknowledgements &&
                  !pending() && !startable() && !wants_acknowledgement();
  return left_.answers;
}

// Defers the question if no signaled request waits for the answer: it can follow what is posted
// next.
bool Tx::leave_question() {
  left_.questions = may_leave_.questions && signaled_ <= asked_ && !found_.any();
  return left_.questions;
}

// True also for requests that need no acknowledgement.
bool Tx::has_arrived(uint64_t index, const SendWqe& wr) const {
  const OpcodeRule& rule = rule_of(wr.opcode);
  if (rule.answered || rule.local || index < shared_->arrived.load(std::memory_order_acquire))
    return true;
  const ArrivalHint hint = shared_->at_peer.load();
  if (rule.queue == ddp::kQnSend) return static_cast<int32_t>(hint.next_send - wr.msn) > 0;
  // Empty Writes are not counted.
  return wr.length > 0 && static_cast<int32_t>(hint.writes - wr.msn) >= 0;
}

// A Write with immediate ends with its immediate data and gets the MSN of that.
void Tx::number(SendWqe& wr) {
  const OpcodeRule& rule = rule_of(wr.opcode);
  if (rule.remote == Remote::kRdma && wr.length > 0) ++writes_;
  wr.msn = rule.queue == ddp::kQnSend ? send_msn_++ : writes_;
}

// A program that answers a message has received it, so the peer's request must complete before the
// answer is received. The hint tells what no answer to the peer has acknowledged yet: the peer has
// not asked, since its two questions ask about earlier messages, or the answer is still to be sent.
bool Tx::owes_arrival_hint(const SendWqe& wr) const {
  return rule_of(wr.opcode).queue == ddp::kQnSend && shared_->peer_acknowledges() &&
         shared_->here.load() != told_;
}

// The answer to the peer's oldest request was built. It acknowledges what had arrived before that
// request, as an arrival hint does; a hint may have told more meanwhile.
void Tx::end_response() {
  const ArrivalHint& now = shared_->inbound_requests.front()->arrivals;
  if (static_cast<int32_t>(now.next_send - told_.next_send) > 0) told_.next_send = now.next_send;
  if (static_cast<int32_t>(now.writes - told_.writes) > 0) told_.writes = now.writes;
  shared_->inbound_requests.pop();
  answer_in_batch_ = true;
}

bool Tx::build_arrival_hint() {
  if (!ensure_batch()) return false;
  told_ = shared_->here.load();
  build_empty_write(told_.writes, arrival_hint_offset(told_));
  return true;
}

// Goes right before a Terminate. That names a segment, and several requests may have sent one like
// it; the one to blame is the first that has not arrived. Messages are not interleaved (RFC 5041
// 5.3), so inside a message the hint is sent only to a peer that is known to be a uiwarp.
void Tx::build_last_arrival_hint(bool in_message) {
  const bool wanted =
      shared_->peer_asks.load(std::memory_order_relaxed) || (shared_->acknowledged && !in_message);
  const ArrivalHint nothing{shared_->first_msn, 0};
  if (wanted && shared_->here.load() != nothing) build_arrival_hint();
}

bool Tx::fill_acknowledgements() {
  if (pending() || fault_.raised || !shared_ || message_.kind != Message::kNone || !may_send())
    return false;
  build_acknowledgements();
  return pending();
}

// Builds as many answers as are due and have room.
void Tx::build_acknowledgements() {
  while (has_room(0)) {
    const InboundRequest* const request = shared_->inbound_requests.front();
    if (!request || !request->is_empty_read()) return;
    if (owes_immediates_hint() && !build_immediates_hint()) return;
    message_ = {.kind = Message::kReadResponse};
    if (!build_response_segment()) return;
  }
}

}  // namespace uiw::qp
