// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Messages that cannot be delivered. With reliable service they end the connection. With unreliable
// service (core/service.h) they are dropped: the rest of the message, and the immediate data behind
// a Write, are discarded, and the next message is handled as if the dropped one had never existed.
// doc/decisions/027-unreliable-connections.md
#include "qp/rx.h"

namespace uiw::qp {

using core::TermCode;

// The one place that decides between the two. Not for violations of the protocol, which end the
// connection with either service.
RxStatus Rx::undeliverable(TermCode code, const Segment& segment, Loss loss, ibv_event_type event) {
  if (shared_->service == core::Service::kReliable) return raise(code, &segment, event);
  shared_->losses.count(loss);
  if (loss == Loss::kNoReceive)
    core::explain(
        shared_->told,
        "queue pair 0x%06x: a message of the peer found no receive posted, and is dropped, "
        "as unreliable service has it",
        shared_->qp_num);
  // This is no fault: clear what was noted for one.
  fault_.cause = core::Cause::kNone;
  explained_ = false;
  return skip(segment);
}

// Drops this segment and the rest of its message.
RxStatus Rx::skip(const Segment& segment) {
  open_.dropped = open_.active;
  if (segment.tagged) {
    write_dropped_ = true;
    write_ended_ = ddp::is_last(segment.ulpdu[0]);
    write_begun_ = !write_ended_;
    return RxStatus::kOk;
  }
  // From now on the next message is expected: segments of this one will have another MSN.
  ++send_msn_;
  send_dropped_ = !ddp::is_last(segment.ulpdu[0]);
  write_ended_ = false;
  // The hints were for the dropped message.
  length_hint_ = {};
  immediate_hint_.reset();
  return RxStatus::kOk;
}

// A segment of the message that is being dropped, or an error.
RxStatus Rx::on_other_msn(const Segment& segment, const ddp::UntaggedHeader& header) {
  if (!send_dropped_ || header.msn + 1 != send_msn_)
    return raise(TermCode::kUntaggedMsnRange, &segment);
  send_dropped_ = !header.last;
  open_.dropped = open_.active;
  return RxStatus::kOk;
}

// InfiniBand's responder drops such a message of a UC queue pair and uses the receive for the next
// one (Linux rxe does so). A receive of an SRQ cannot be put back, since other queue pairs have
// taken later ones. It completes with an error, and the queue pair goes on.
void Rx::end_receive(ibv_wc_status status, core::Cause cause) {
  const bool keeps = shared_->service == core::Service::kUnreliable;
  if (receiving_ && keeps && shared_->receive_queue->give_back())
    receiving_ = false;
  else
    fail_receive(status, cause);
}

}  // namespace uiw::qp
