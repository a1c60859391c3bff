// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What becomes of messages that cannot be delivered: the end of the connection, or, with unreliable
// service (core/service.h), nothing. Then what is left of the message, and the immediate data
// behind a Write, go nowhere as well, and the next message is as if it had not been there.
// doc/decisions/027-unreliable-connections.md
#include "qp/rx.h"

namespace uiw::qp {

using core::TermCode;

// The one place that decides it. Not for what breaks the rules of the protocol, which neither
// service forgives.
RxStatus Rx::undeliverable(TermCode code, const Segment& segment, Loss loss, ibv_event_type event) {
  if (shared_->service == core::Service::kReliable) return raise(code, &segment, event);
  shared_->losses.count(loss);
  if (loss == Loss::kNoReceive)
    core::explain(
        shared_->told,
        "queue pair 0x%06x: a message of the peer found no receive posted, and is dropped, "
        "as unreliable service has it",
        shared_->qp_num);
  // It is no fault.
  fault_.cause = core::Cause::kNone;
  explained_ = false;
  return skip(segment);
}

// This segment, and all that follows of its message, is not looked at.
RxStatus Rx::skip(const Segment& segment) {
  open_.dropped = open_.active;
  if (segment.tagged) {
    write_dropped_ = true;
    write_ended_ = ddp::is_last(segment.ulpdu[0]);
    write_begun_ = !write_ended_;
    return RxStatus::kOk;
  }
  // The next message is awaited already: what still comes of this one has another MSN.
  ++send_msn_;
  send_dropped_ = !ddp::is_last(segment.ulpdu[0]);
  write_ended_ = false;
  // Those were for it.
  length_hint_ = {};
  immediate_hint_.reset();
  return RxStatus::kOk;
}

// More of a message that is being dropped; or a mistake.
RxStatus Rx::on_other_msn(const Segment& segment, const ddp::UntaggedHeader& header) {
  if (!send_dropped_ || header.msn + 1 != send_msn_)
    return raise(TermCode::kUntaggedMsnRange, &segment);
  send_dropped_ = !header.last;
  open_.dropped = open_.active;
  return RxStatus::kOk;
}

// InfiniBand's responder drops such a message of a UC queue pair and has the receive serve the next
// one (Linux rxe does so). One of an SRQ it cannot put back, since other queue pairs have taken
// later ones, so it completes with an error, and the queue pair lives on.
void Rx::end_receive(ibv_wc_status status, core::Cause cause) {
  const bool keeps = shared_->service == core::Service::kUnreliable;
  if (receiving_ && keeps && shared_->receive_queue->give_back())
    receiving_ = false;
  else
    fail_receive(status, cause);
}

}  // namespace uiw::qp
