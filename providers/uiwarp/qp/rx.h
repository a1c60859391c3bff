// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The receive machine of one connection: TCP bytes in; placed data, receive completions and work
// for the transmit machine out. Pure: no socket, thread or clock. Thread: the one driver of the
// connection's receive side (the engine).
//
// With CRC an FPDU is verified whole before any of it is placed (RFC 5044 6). Without, a large one
// is placed by parts as it comes (rx_parts.cc), or received directly into place
// (rx_direct.cc). It is checked in the order of conformance A14: version, opcode, QN, MSN, buffer,
// MO, length; tagged: STag, protection domain, rights, wrap, bounds.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "core/bytes.h"
#include "core/term_code.h"
#include "core/tuning.h"
#include "ddp/header.h"
#include "mem/diagnosis.h"
#include "mem/last_region.h"
#include "mpa/framing.h"
#include "qp/direct_placement.h"
#include "qp/peer_hints.h"
#include "qp/rx_staging.h"
#include "qp/shared.h"
#include "queue/completion_batch.h"
#include "rdmap/terminate.h"

namespace uiw::qp {

enum class RxStatus {
  kOk,
  kWantReceive,  // a Send or Immediate Data found no receive: stop feeding, call resume() when one
                 // was posted
  kWantSender,   // requests are to complete first (SendsFirst): stop feeding, call resume() when
                 // they may have
  kFault,        // the peer (or a local SGE) broke a rule: see fault(); feed nothing more
  kTerminated,   // the peer sent a Terminate: see terminate()
};

inline bool has_to_wait(RxStatus status) {
  return status == RxStatus::kWantReceive || status == RxStatus::kWantSender;
}

struct RxFault {
  // Whose mistake it is.
  enum class Blame : uint8_t {
    kPeer,     // what came breaks a rule
    kProgram,  // memory that this end's program named in a receive or a Read is not to be written
               // to
  };
  rdmap::Terminate terminate;                 // what the peer is to be told
  ibv_event_type event = IBV_EVENT_QP_FATAL;  // what the application is told (conformance 3.4)
  uint64_t failed_slot = kNoSlot;             // our request that got a wrong response
  ibv_wc_status failed_status = IBV_WC_SUCCESS;
  Blame blame = Blame::kPeer;
  core::Cause cause = core::Cause::kNone;  // vendor_err of what fails by it
};

class Rx {
 public:
  // `wait_for_receive`: report kWantReceive instead of a fault when a message finds no receive
  // (RFC 5041 7.1 allows to hide it "by LLP means"; conformance 3.6). Unreliable service never
  // does: such a message is dropped.
  void start(Shared& shared, bool wait_for_receive);

  RxStatus on_octets(core::Bytes octets);

  // Plans where the next bytes of the stream are received, when their place is known before they
  // have come. False when it is not, or for too few of them: then no region is referenced, and what
  // comes is fed to on_octets().
  bool plan_placement(DirectPlacement& out);
  bool may_place_directly() const {
    return open_.active && open_.left >= core::tuning::kLargePayload;
  }
  // How much of `room` to receive without direct placement, so that it is likely to end where an
  // FPDU does.
  size_t good_size(size_t room) const;
  // The next `octets` of the stream were received as planned and, what did not fit, into `behind`.
  // Drops the references of regions.
  RxStatus placed_directly(DirectPlacement& placement, size_t octets, core::Bytes behind = {});
  // After kWantReceive and kWantSender. The same statuses; the same again when nothing has changed.
  RxStatus resume();
  bool wants_sender() const { return waiting_ == RxStatus::kWantSender; }
  // After kWantReceive: no receive will be posted; the fault a strict receiver would have raised.
  RxStatus give_up_waiting();

  const RxFault& fault() const { return fault_; }
  const rdmap::Terminate& terminate() const { return terminate_; }

  // No FPDU is half received, and no message that has taken a receive.
  bool at_boundary() const { return staging_.empty() && !receiving_ && !open_.active; }
  // More of a message is to come whose first bytes are there: a stream that ends here has lost it.
  bool mid_message() const { return !at_boundary() || response_octets_ > 0 || write_begun_; }
  // True once per event that the transmit machine waits for: a request was answered, one came in,
  // or the first FPDU opened the responder's side.
  bool take_news() { return std::exchange(news_, false); }
  // True when a message found a receive since the last call.
  bool take_progress() { return std::exchange(progress_, false); }
  // How many receives, Reads and atomics the peer's bytes have completed.
  uint32_t completed() const { return completed_; }
  // An armed SRQ limit was crossed since the last call.
  bool take_limit_reached() { return std::exchange(limit_reached_, false); }

  // A message has taken its receive and not completed it.
  bool receiving() const { return receiving_; }
  // Completes the receive in progress, if any, with `status`.
  void fail_receive(ibv_wc_status status, core::Cause cause);
  // The rest of its message will not come, or is not wanted: completes it with `status`, or, with
  // unreliable service and no SRQ, leaves it to the next message.
  void end_receive(ibv_wc_status status, core::Cause cause);
  // Says what was wrong with what came, if that was not said yet. After kFault.
  void explain_fault();
  // No receive was there in time: the fault says no more of it.
  void set_explained() { explained_ = true; }

 private:
  // `ulpdu` is whole, unless the segment is placed by parts: then as much as has come, the header
  // at least.
  struct Segment {
    core::Bytes ulpdu;
    uint32_t size;  // of the whole ULPDU
    bool tagged;
    uint32_t header_size;
    core::Bytes payload() const { return ulpdu.subspan(header_size); }
    uint32_t payload_size() const { return size - header_size; }
  };
  // A segment whose payload is being placed: checked, and not complete.
  struct Open {
    bool active = false;
    bool tagged = false;
    bool dropped = false;  // its payload goes nowhere
    uint32_t size = 0;     // of the ULPDU
    uint32_t left = 0;     // bytes of payload to come
    uint32_t trailer = 0;  // bytes of pad and CRC to come
    uint8_t header[ddp::kUntaggedHeaderSize] = {};
    rdmap::Opcode opcode() const { return rdmap::opcode_of(header[1]); }
  };

  mpa::Extent extent(core::Bytes seen) const;
  bool crc_is_right(core::Bytes fpdu) const;
  RxStatus take(core::Bytes octets);
  RxStatus hold_back(RxStatus status, core::Bytes octets);
  RxStatus on_fpdu(core::Bytes fpdu);
  RxStatus on_marked_fpdu(core::Bytes fpdu);
  RxStatus on_ulpdu(core::Bytes ulpdu, uint32_t size);
  RxStatus on_segment(core::Bytes ulpdu, uint32_t size);
  // Tells the transmit machine, the first time.
  void tell(std::atomic<bool>& what) {
    if (what.load(std::memory_order_relaxed)) return;
    what.store(true, std::memory_order_release);
    news_ = true;
  }
  // What comes may be asked for by what comes behind it (tx_acknowledgements.cc).
  void note_unasked(bool is) {
    if (shared_->unasked.load(std::memory_order_relaxed) != is)
      shared_->unasked.store(is, std::memory_order_release);
  }
  // rx_parts.cc
  static constexpr size_t kHead = DirectPlacement::kHead;
  bool may_come_by_parts(size_t missing) const;
  bool comes_by_parts(core::Bytes seen) const;
  RxStatus begin_parts(core::Bytes seen);
  RxStatus on_part(core::Bytes& octets);
  RxStatus place(core::Bytes payload);
  RxStatus finish(const Segment& segment);
  Segment open_segment() const;
  // rx_direct.cc
  struct Expected {
    uint64_t octets = 0;   // of the message, behind the segment that has begun
    uint32_t segment = 0;  // payload of each, but for the last one
  };
  Expected expected() const;
  bool find_write(DirectPlacement& out, uint64_t ahead) const;
  bool find_sges(DirectPlacement& out, uint64_t ahead) const;
  void add_ahead(DirectPlacement& out, Expected expected, uint64_t room, uint32_t held_back) const;
  static bool take_unexpected(const DirectPlacement& placement, size_t octets, RxStaging& rest);
  RxStatus take_expected(const DirectPlacement& placement, size_t octets);
  void advance(size_t octets);
  // rx_untagged.cc
  RxStatus on_untagged(const Segment& segment, rdmap::Opcode opcode);
  bool sends_first();
  bool take_receive(const Segment& segment, rdmap::Opcode opcode, RxStatus& otherwise);
  RxStatus on_send(const Segment& segment, rdmap::Opcode opcode, const ddp::UntaggedHeader& header);
  RxStatus on_immediate(const Segment& segment, rdmap::Opcode opcode,
                        const ddp::UntaggedHeader& header);
  // queue::scatter() of what belongs to a receive or a Read, by shared_->place under --shake.
  bool scatter(uint32_t pd, const ibv_sge* sges, uint32_t count, uint64_t offset,
               core::Bytes payload);
  RxStatus place_send(const Segment& segment, core::Bytes payload);
  RxStatus finish_send(const Segment& segment, rdmap::Opcode opcode,
                       const ddp::UntaggedHeader& header);
  RxStatus on_read_request(const Segment& segment, const ddp::UntaggedHeader& header);
  RxStatus on_terminate(const Segment& segment, const ddp::UntaggedHeader& header);
  // rx_atomic.cc
  RxStatus on_atomic_request(const Segment& segment, const ddp::UntaggedHeader& header);
  RxStatus on_atomic_response(const Segment& segment, const ddp::UntaggedHeader& header);
  // rx_tagged.cc
  RxStatus on_tagged(const Segment& segment, rdmap::Opcode opcode);
  RxStatus on_write(const Segment& segment, const ddp::TaggedHeader& header);
  void take_hint(const ddp::TaggedHeader& header);
  void take_immediate_hint(uint64_t to);
  void take_arrival_hint(uint32_t stag, uint64_t to);
  bool find_sink(const Segment& segment, uint64_t to, uint64_t length,
                 mem::LastRegion::Found& region, RxStatus& otherwise);
  RxStatus finish_write();
  RxStatus on_read_response(const Segment& segment, const ddp::TaggedHeader& header);
  RxStatus place_response(core::Bytes payload);
  RxStatus finish_read_response(const ddp::TaggedHeader& header);

  // rx_unreliable.cc
  RxStatus undeliverable(core::TermCode code, const Segment& segment, Loss loss,
                         ibv_event_type event = IBV_EVENT_QP_FATAL);
  RxStatus skip(const Segment& segment);
  RxStatus on_other_msn(const Segment& segment, const ddp::UntaggedHeader& header);

  RxStatus raise(core::TermCode code, const Segment* segment,
                 ibv_event_type event = IBV_EVENT_QP_FATAL);
  RxStatus raise_read(core::TermCode code, const Segment& segment);
  RxStatus raise_response(core::TermCode code, const Segment& segment, ibv_wc_status status);
  RxStatus raise_sink(uint64_t slot, uint64_t octets);
  void finish_request();
  // rx_explain.cc
  void explain_access(const char* operation, const mem::Wanted& wanted);
  void explain_short_receive(const Segment& segment, bool last);
  core::Cause explain_receive(uint64_t octets);
  core::Cause explain_answer(const SendWqe& wr, uint64_t octets);
  void explain_invalidation(uint32_t stag, bool foreign);
  void explain_too_many_requests();
  void explain_misaligned(uint64_t to);
  // `wc` says what was received; whose receive that was is filled in here.
  void complete_receive(ibv_wc& wc, bool solicited);
  void tell_completions() {
    if (completions_) completions_->flush();
  }

  Shared* shared_ = nullptr;
  mem::LastRegion regions_{mem::Side::kReceive};  // for one on_octets()
  RxStaging staging_;
  Open open_;
  RxFault fault_;
  rdmap::Terminate terminate_;

  queue::CompletionBatch* completions_ = nullptr;  // during one on_octets()
  queue::Receive receive_;                         // valid while receiving_
  uint64_t response_octets_ = 0;                   // of the oldest outstanding Read, placed so far
  uint64_t write_octets_ = 0;                      // of the last Write, complete or not
  uint64_t write_from_ = 0;                        // the Tagged Offset where it began
  LengthHint length_hint_;                         // of the next Send or Write
  LengthHint write_hint_, send_hint_;              // of those that have begun
  std::optional<uint32_t> immediate_hint_;         // of the next Send
  std::optional<uint32_t> send_immediate_;         // of that which has begun
  uint32_t send_msn_ = 1;     // next expected on QN 0; of the message in progress while receiving_
  uint32_t request_msn_ = 1;  // next expected on QN 1
  uint32_t atomic_msn_ = 1;   // next expected on QN 3
  uint32_t send_octets_ = 0;  // of the message in progress
  rdmap::Opcode send_opcode_ = rdmap::Opcode::kSend;
  uint32_t position_ =
      0;  // modulo 512, where the next FPDU begins (RFC 5044 4.3); with markers only
  bool markers_ = false;  // the peer inserts markers, because we asked for them
  bool receiving_ = false;
  bool write_begun_ = false;    // more of the last Write is to come
  bool write_ended_ = false;    // what the peer posted last was a Write, and it is complete
  bool write_dropped_ = false;  // the last Write, from some segment of it on
  bool send_dropped_ = false;   // more is to come of the message with the MSN before send_msn_
  uint32_t last_fpdu_ = 0;      // bytes of the latest one
  uint32_t completed_ = 0;
  // kWantReceive or kWantSender: it was reported, and what has come since is kept.
  RxStatus waiting_ = RxStatus::kOk;
  bool answered_ = false;     // a request of ours, since SendsFirst was asked
  bool sends_first_ = false;  // SendsFirst has said so of the segment being checked
  bool wait_for_receive_ = false;
  bool explained_ = false;  // the fault
  bool ended_ = false;      // a fault or Terminate: nothing more is looked at (RFC 5044 8)
  bool news_ = false;
  bool progress_ = false;
  bool limit_reached_ = false;
};

}  // namespace uiw::qp
