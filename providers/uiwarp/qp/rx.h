// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The receive machine of one connection. In: TCP bytes. Out: placed data, receive completions, and
// work for the transmit machine. Pure: no socket, thread or clock. Thread: the one driver of the
// connection's receive side: the engine, or the holder of the lease.
//
// With CRC, a whole FPDU is verified before any of it is placed (RFC 5044 6). Without CRC, a large
// one is placed in parts as it arrives (rx_parts.cc), or received directly into place
// (rx_direct.cc). A segment is checked in the order of conformance A14: version, opcode, QN, MSN,
// buffer, MO, length; tagged: STag, protection domain, rights, wrap, bounds.
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
                 // is posted
  kWantSender,   // requests must complete first (SendsFirst): stop feeding, call resume() when they
                 // may have
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
    kProgram,  // this end's program named memory in a receive or a Read that must not be written to
  };
  rdmap::Terminate terminate;                 // to send to the peer
  ibv_event_type event = IBV_EVENT_QP_FATAL;  // for the application (conformance 3.4)
  uint64_t failed_slot = kNoSlot;             // our request that got a wrong response
  ibv_wc_status failed_status = IBV_WC_SUCCESS;
  Blame blame = Blame::kPeer;
  core::Cause cause = core::Cause::kNone;  // vendor_err of what fails because of it
};

class Rx {
 public:
  // `wait_for_receive`: report kWantReceive instead of a fault when a message finds no receive (RFC
  // 5041 7.1 allows hiding it "by LLP means"; conformance 3.6). Unreliable service never waits: it
  // drops such a message.
  void start(Shared& shared, bool wait_for_receive);

  RxStatus on_octets(core::Bytes octets);

  // Plans where to receive the next bytes of the stream if their destination is known before they
  // have come. False when it is not, or only for too few bytes: then no region is referenced, and
  // the bytes must be fed to on_octets().
  bool plan_placement(DirectPlacement& out);
  bool may_place_directly() const {
    return open_.active && open_.left >= core::tuning::kLargePayload;
  }
  // How many bytes, at most `room`, to receive without direct placement so that they are likely to
  // end at the end of an FPDU.
  size_t good_size(size_t room) const;
  // The next `octets` of the stream were received as planned, and those beyond the plan into
  // `behind`. Drops the references to regions.
  RxStatus placed_directly(DirectPlacement& placement, size_t octets, core::Bytes behind = {});
  // Goes on after kWantReceive or kWantSender. Returns that status again when nothing has changed.
  RxStatus resume();
  bool wants_sender() const { return waiting_ == RxStatus::kWantSender; }
  // After kWantReceive: no receive was posted in time. Raises the fault that a strict receiver
  // would have raised at once.
  RxStatus give_up_waiting();
  // After kWantReceive: the peer has closed, and the message that waits is not delivered any more,
  // nor is anything else done that the peer asks for. What answers this end is still taken, and so
  // is a Terminate.
  RxStatus take_answers_only();

  const RxFault& fault() const { return fault_; }
  const rdmap::Terminate& terminate() const { return terminate_; }

  // No FPDU is half received, nor a message that has taken a receive.
  bool at_boundary() const { return staging_.empty() && !receiving_ && !open_.active; }
  // A message is incomplete: a stream that ends here has lost the rest of it.
  bool mid_message() const { return !at_boundary() || response_octets_ > 0 || write_begun_; }
  // True once after each event that the transmit machine waits for: one of our requests was
  // answered, a request arrived, or the first FPDU allowed the responder to send.
  bool take_news() { return std::exchange(news_, false); }
  // True when a message found a receive since the last call.
  bool take_progress() { return std::exchange(progress_, false); }
  // How many receives, Reads and atomics have completed by what the peer sent.
  uint32_t completed() const { return completed_; }
  // An armed SRQ limit was crossed since the last call.
  bool take_limit_reached() { return std::exchange(limit_reached_, false); }

  // A message has taken its receive and is not complete.
  bool receiving() const { return receiving_; }
  // Of that receive.
  uint64_t receiving_wr_id() const { return receive_.wr_id; }
  // Completes the receive in progress, if any, with `status`.
  void fail_receive(ibv_wc_status status, core::Cause cause);
  // The rest of the message will not come, or is not wanted. Completes the receive with `status`;
  // with unreliable service and no SRQ, keeps it for the next message instead.
  void end_receive(ibv_wc_status status, core::Cause cause);
  // Logs what was wrong with the bytes received, unless that was logged already. After kFault.
  void explain_fault();
  // The caller has logged that no receive came in time: explain_fault() logs nothing more.
  void set_explained() { explained_ = true; }

 private:
  // `ulpdu` is complete, unless the segment is placed in parts: then it is what has arrived, at
  // least the header.
  struct Segment {
    core::Bytes ulpdu;
    uint32_t size;  // of the whole ULPDU
    bool tagged;
    uint32_t header_size;
    core::Bytes payload() const { return ulpdu.subspan(header_size); }
    uint32_t payload_size() const { return size - header_size; }
  };
  // A segment whose header was checked and whose payload is being placed.
  struct Open {
    bool active = false;
    bool tagged = false;
    bool dropped = false;  // its payload is discarded
    uint32_t size = 0;     // of the ULPDU
    uint32_t left = 0;     // bytes of payload to come
    uint32_t trailer = 0;  // bytes of pad and CRC to come
    uint8_t header[ddp::kUntaggedHeaderSize] = {};
    rdmap::Opcode opcode() const { return rdmap::opcode_of(header[1]); }
  };

  // What is done with the segments that come.
  enum class Taken : uint8_t {
    kAll,      // all of them
    kAnswers,  // what answers this end, and Terminates; what the peer asks for is dropped
  };

  mpa::Extent extent(core::Bytes seen) const;
  bool crc_is_right(core::Bytes fpdu) const;
  RxStatus take(core::Bytes octets);
  RxStatus hold_back(RxStatus status, core::Bytes octets);
  RxStatus on_fpdu(core::Bytes fpdu);
  RxStatus on_marked_fpdu(core::Bytes fpdu);
  RxStatus on_ulpdu(core::Bytes ulpdu, uint32_t size);
  RxStatus on_segment(core::Bytes ulpdu, uint32_t size);
  // Sets a flag for the transmit machine; the first time is news to it.
  void tell(std::atomic<bool>& what) {
    if (what.load(std::memory_order_relaxed)) return;
    what.store(true, std::memory_order_release);
    news_ = true;
  }
  // Whether the peer has sent something and not asked since whether it has arrived
  // (tx_acknowledgements.cc).
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
    uint64_t octets = 0;   // of the message, after the open segment
    uint32_t segment = 0;  // payload of each segment but the last
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
  // queue::scatter() into the SGEs of a receive or a Read; copies by shared_->place under --shake.
  bool scatter(uint32_t pd, const ibv_sge* sges, uint32_t count, uint64_t offset,
               core::Bytes payload);
  RxStatus place_send(const Segment& segment, core::Bytes payload);
  RxStatus finish_send(const Segment& segment, rdmap::Opcode opcode,
                       const ddp::UntaggedHeader& header);
  RxStatus on_read_request(const Segment& segment, const ddp::UntaggedHeader& header);
  RxStatus accept(InboundRequest& inbound);
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
  // `wc` describes what was received; this fills in the receive's wr_id and queue pair.
  void complete_receive(ibv_wc& wc, bool solicited);
  void tell_completions() {
    if (completions_) completions_->flush();
  }

  Shared* shared_ = nullptr;
  mem::LastRegion regions_{mem::Side::kReceive};  // valid for one on_octets()
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
  LengthHint write_hint_, send_hint_;              // of the Write and the Send in progress
  std::optional<uint32_t> immediate_hint_;         // of the next Send
  std::optional<uint32_t> send_immediate_;         // of the Send in progress
  uint32_t send_msn_ = 1;     // expected next on QN 0; while receiving_, of the message in progress
  uint32_t request_msn_ = 1;  // expected next on QN 1
  uint32_t atomic_msn_ = 1;   // expected next on QN 3
  uint32_t send_octets_ = 0;  // of the message in progress
  rdmap::Opcode send_opcode_ = rdmap::Opcode::kSend;
  uint32_t position_ =
      0;  // where the next FPDU begins, modulo 512 (RFC 5044 4.3); with markers only
  bool markers_ = false;  // the peer inserts markers, because we asked for them
  bool receiving_ = false;
  bool write_begun_ = false;    // the last Write is not complete
  bool write_ended_ = false;    // the peer's last message was a Write, and it is complete
  bool write_dropped_ = false;  // the rest of the last Write is dropped
  bool send_dropped_ = false;   // the message before send_msn_ is dropped, and not complete
  uint32_t last_fpdu_ = 0;      // its size in bytes
  uint32_t completed_ = 0;
  // kWantReceive or kWantSender: that was reported, and bytes that come are kept in staging_.
  RxStatus waiting_ = RxStatus::kOk;
  bool answered_ = false;     // one of our requests was answered since SendsFirst was asked
  bool sends_first_ = false;  // SendsFirst has said yes for the bytes being processed
  Taken taken_ = Taken::kAll;
  bool wait_for_receive_ = false;
  bool explained_ = false;  // the fault was logged
  bool ended_ = false;      // a fault or Terminate: nothing more is processed (RFC 5044 8)
  bool news_ = false;
  bool progress_ = false;
  bool limit_reached_ = false;
};

}  // namespace uiw::qp
