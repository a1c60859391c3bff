// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Acknowledged completions: a Send or Write completes when the peer has received or placed it, not
// when TCP has taken it. The acknowledgement is an empty RDMA Read behind it, which every iWARP
// peer answers, and not before it has dealt with what came earlier (RFC 5040 5.5(12)). A
// Read or atomic of the program's is one, too. doc/decisions/021-acknowledged-completions.md
//
// The other side of it: empty Reads of the peer are answered before anything else.
#include "core/tuning.h"
#include "qp/opcode_rules.h"
#include "qp/tx.h"

namespace uiw::qp {

// A few at a time, so that a stream has one answer in a round trip, not one for each message.
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

// An empty Read, whose answer is an acknowledgement whatever else it is asked for.
void Tx::build_question(OutstandingRequest question) {
  asked_ = shared_->send_queue->started();
  question.cookie = next_cookie();
  question.behind = asked_;
  shared_->outstanding_requests.push(question);
  build_read_request({question.cookie, 0, 0, kRtrStag, 0});
}

// The only thing that could be sent is the answer to one empty Read. A program that answers the
// message before it has both go in one call.
bool Tx::leave_answer() {
  left_.answers = may_leave_.answers && shared_->inbound_requests.front()->is_empty_read() &&
                  shared_->inbound_requests.size() < core::tuning::kMostAcknowledgements &&
                  !pending() && !startable() && !wants_acknowledgement();
  return left_.answers;
}

// No completion waits for the answer: it may be asked for behind what is posted next.
bool Tx::leave_question() {
  left_.questions = may_leave_.questions && signaled_ <= asked_ && !found_.any();
  return left_.questions;
}

// What is done otherwise than by sending needs no acknowledgement.
bool Tx::has_arrived(uint64_t index, const SendWqe& wr) const {
  const OpcodeRule& rule = rule_of(wr.opcode);
  if (rule.answered || rule.local || index < shared_->arrived.load(std::memory_order_acquire))
    return true;
  const ArrivalHint hint = shared_->at_peer.load();
  if (rule.queue == ddp::kQnSend) return static_cast<int32_t>(hint.next_send - wr.msn) > 0;
  // One of no bytes is not counted.
  return wr.length > 0 && static_cast<int32_t>(hint.writes - wr.msn) >= 0;
}

// A Write with immediate ends with its immediate data, which has an MSN.
void Tx::number(SendWqe& wr) {
  const OpcodeRule& rule = rule_of(wr.opcode);
  if (rule.remote == Remote::kRdma && wr.length > 0) ++writes_;
  wr.msn = rule.queue == ddp::kQnSend ? send_msn_++ : writes_;
}

// A program that answers a message has received it, and its peer's completes before the answer
// does. Where that was not asked for yet, since two questions are on their way for what came
// before, the peer learns it without.
bool Tx::owes_arrival_hint(const SendWqe& wr) const {
  return rule_of(wr.opcode).queue == ddp::kQnSend && shared_->expects_question() &&
         shared_->here.load() != told_;
}

bool Tx::build_arrival_hint() {
  if (!ensure_batch()) return false;
  told_ = shared_->here.load();
  build_empty_write(told_.writes, arrival_hint_offset(told_));
  return true;
}

// Right before a Terminate, which names a segment: several requests may have sent one like it, and
// the one that it speaks of is the first that has not arrived. Messages are not interleaved (RFC
// 5041 5.3), so within one it is for a peer only that is known to be a uiwarp.
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

// As many as there are, and have room.
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
