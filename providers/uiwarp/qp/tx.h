// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The transmit machine of one connection. In: work requests, and the peer's Read and Atomic
// Requests. Out: FPDUs and send completions. Pure: no socket, thread or clock. Thread: the holder
// of the QP's sender role.
//
//   while (tx.fill()) { n = send(tx.pieces()); tx.consume(n); }
//
// Messages are never interleaved (RFC 5041 5.3): one is sent completely before the next begins.
// Work requests and responses take turns, so that neither starves.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "core/cause.h"
#include "core/copy.h"
#include "core/crc32c.h"
#include "core/siphash.h"
#include "core/term_code.h"
#include "core/tuning.h"
#include "mem/last_region.h"
#include "qp/shared.h"
#include "qp/tx_batch.h"
#include "rdmap/terminate.h"

namespace uiw::qp {

// Why transmission cannot go on: an error of this side, found before any of the message was sent.
struct TxFault {
  bool raised = false;
  rdmap::Terminate terminate;  // to send to the peer
  bool local_access =
      false;  // raise IBV_EVENT_QP_ACCESS_ERR, not QP_FATAL: a region was deregistered
  core::Cause cause = core::Cause::kNoMemory;
};

class Tx {
 public:
  Tx() = default;
  ~Tx();
  Tx(const Tx&) = delete;
  Tx& operator=(const Tx&) = delete;

  // Call it before the first fill(). `secret` makes the cookies of our Reads and atomics
  // unpredictable.
  void start(Shared& shared, uint32_t emss, const core::SipKey& secret);
  // RFC 5044 4.5: the MULPDU follows the EMSS, or spans several segments (qp/long_fpdus.h); with
  // CRC there is a further limit. Applies to FPDUs that are not built yet.
  void set_emss(uint32_t emss);

  // Builds what may be sent now, unless something is pending. True: pieces() is not empty. False:
  // there is nothing to send, or fault() was raised.
  bool fill();
  // What fill() may defer, to be sent together with something later; and what the last fill() has
  // deferred.
  struct Left {
    bool reads = false;    // Reads and atomics, while they are few compared to the outstanding ones
    bool answers = false;  // to empty Reads, while the peer may send one more and nothing else is
                           // sent
    bool questions = false;  // empty Reads, while no request that they ask about is signaled
    bool any() const { return reads || answers || questions; }
  };
  void may_leave(Left what) { may_leave_ = what; }
  Left left() const { return left_; }
  std::span<const iovec> pieces() const;
  // TCP has taken `octets` of pieces(): marks the WRs that ended in them as done.
  void consume(uint64_t octets);
  bool pending() const { return batch_ && !batch_->empty(); }
  // Whether pieces() hold references to regions, which cannot be deregistered meanwhile; and
  // whether a deregistration waits for one.
  bool holds_regions() const { return batch_ && batch_->holds_memory(); }
  bool holds_revoked_regions() const { return batch_ && batch_->holds_revoked(); }
  // Drops these references; the bytes of pieces() in those regions are copied. False when out of
  // memory.
  bool release_regions();
  // Drops pieces() and the references to their regions. Unless all of them were sent, nothing may
  // be sent afterwards.
  void drop_pieces();

  // Completes, in posting order, the WRs that are done. Call it also after Rx has finished a Read
  // or atomic.
  void retire();
  // If nothing is pending, builds the answers to empty Reads that are due, even when nothing else
  // may be sent any more: a peer must learn which of its messages were received
  // (tx_acknowledgements.cc). True: pieces() is not empty.
  bool fill_acknowledgements();

  const TxFault& fault() const { return fault_; }
  // TCP has taken the RTR frame (RFC 6581 5), or none had to be sent.
  bool rtr_sent() const { return rtr_ == RtrState::kNone && !(batch_ && rtr_in_batch_); }
  // Sends one more FPDU without a WR and without a completion at either end: an empty Write,
  // between two messages.
  void add_empty_write() { empty_write_ = !fault_.raised; }
  // Sends an arrival hint between two messages: the peer's question lies behind a Send that waits
  // for its receive.
  void tell_arrivals() { tells_arrivals_ = !fault_.raised; }
  // Graceful close: WRs posted from now on are not started (flush() completes them). Nor are WRs
  // that a responder may not send yet, if no RTR frame was agreed: the peer may never send
  // anything.
  void stop_starting() {
    const bool goes_out = may_send() || shared_->agreement.rtr != mpa::Rtr::kNone;
    start_limit_ = goes_out ? shared_->send_queue->posted() : shared_->send_queue->started();
  }
  // The peer has closed: starts nothing more, and asks for no more acknowledgements, which would
  // not be answered.
  void stop_starting_now() {
    start_limit_ = shared_->send_queue->started();
    acknowledgements_ = Acknowledgements::kAskNoMore;
  }
  // True: no request posted to `queue` reads memory of that region any more. `queue` is this
  // connection's, which need not have begun. FPDUs that are built are copied. `now`: what is not
  // built fails. False also when out of memory.
  bool lets_go_of(SendQueue& queue, uint32_t stag, bool now);
  // Nothing is to be started, pending or unanswered: a graceful FIN may be sent.
  bool idle() const;
  // There are responses or a begun message to finish. (The peer may have closed its side already.)
  bool owes_octets() const;
  // TCP has yet to take an answer to a Read or atomic of the peer.
  bool owes_answers() const;

  // Ends with an error. Finishes at most the FPDU that TCP has taken in part, adds the Terminate,
  // then completes all outstanding WRs: the one to blame with its own status, the others with
  // IBV_WC_WR_FLUSH_ERR. Afterwards only pieces()/consume() and flush() may be called. True: a WR
  // was blamed.
  struct Cause {
    const rdmap::Terminate* send = nullptr;      // to send to the peer
    const rdmap::Terminate* received = nullptr;  // sent by the peer: may name one of our WRs
    uint64_t failed_slot = kNoSlot;              // our request whose response was wrong
    ibv_wc_status failed_status = IBV_WC_SUCCESS;
  };
  bool abandon(const Cause& cause);
  // After abandon() or without a connection: completes WRs posted since with IBV_WC_WR_FLUSH_ERR.
  void flush(Shared& shared);
  // For unreliable service before a connection, or after its end: completes posted WRs as if they
  // had been sent. Local WRs are carried out, and an error of this end is one all the same: then
  // fault() was raised.
  void discard(Shared& shared);

 private:
  // Whether all payload is copied. The kernel reads the payload after its FPDU was built. Meanwhile
  // the program, its other threads or a region's peers may write to it. That may tear the data, as
  // with an adapter, but the CRC must match what is sent (RFC 5044 4.4), or the peer ends the
  // connection. doc/decisions/020-copies-under-a-crc.md
  bool copies_all() const { return crc_ || markers_; }
  bool to_copy(uint32_t payload) const {
    return copies_all() || payload <= core::tuning::kMostCopied;
  }
  enum class RtrState : uint8_t { kNone, kPending };
  struct Message {
    enum Kind : uint8_t { kNone, kSend, kWrite, kImmediate, kReadResponse } kind = kNone;
    uint64_t slot = kNoSlot;
    uint64_t offset = 0, length = 0;
    uint32_t segment = 0;         // bytes of payload in each, as hinted; 0: by the MULPDU
    bool length_hint = false;     // a length hint must precede it
    bool immediate_hint = false;  // an immediate hint must precede it
    uint32_t sge = 0, sge_offset = 0;
  };

  // When Sends and Writes complete.
  enum class Acknowledgements : uint8_t {
    kNone,       // when TCP has taken them
    kAsk,        // when the peer has received them: it is asked when a batch ends, or the next one
                 // begins
    kAskNoMore,  // the same, but the peer is asked no more: it would not answer
  };

  bool may_send() const;
  bool pick();
  bool startable() const;
  bool run_local_requests();
  core::Cause run(const SendWqe& wr);
  bool begin_response(const InboundRequest& request);
  bool pick_work_request();
  bool leave_reads(uint32_t unanswered);
  bool start_work_request(SendWqe& wr);
  bool start_discarded(SendWqe& wr);
  // tx_small.cc
  bool is_small(const SendWqe& wr) const;
  bool build_small_messages();
  bool build_small(SendWqe& wr, uint64_t slot);
  void start_request(SendWqe& wr, uint64_t slot);
  // tx_refusal.cc
  bool check_local_sges(SendWqe& wr);
  void refuse(const SendWqe& wr, ibv_wc_status status, core::Cause cause);
  void refuse_sge(SendWqe& wr, const ibv_sge& sge, uint64_t used);
  bool raise_found();
  void raise_local(SendWqe& wr, ibv_wc_status status, core::Cause cause);
  void build_rtr();
  void build_empty_write(uint32_t stag, uint64_t to);
  uint32_t largest_ulpdu() const;
  bool needs_capability_hint(uint64_t length) const;
  bool build_capability_hint();
  bool worth_length_hint(uint64_t length) const;
  bool worth_staggering(uint64_t length) const;
  bool to_stagger(const SendWqe& wr, uint32_t header_size) const;
  void build_read_request(const rdmap::ReadRequest& request);
  // tx_immediates.cc
  enum class Immediates : uint8_t {
    kUntold,  // we have not told the peer that we take immediate hints
    kTold,    // we have
    kAsked,   // and have sent a question behind that
  };
  bool owes_immediates_hint() const;
  bool build_immediates_hint();
  bool ask_immediates();
  // tx_acknowledgements.cc
  // A Send or Write has started; `behind` is the slot after it.
  void has_started(const SendWqe& wr, uint64_t behind) {
    unasked_ = behind;
    if (wr.signaled) signaled_ = behind;
  }
  // Gives a Send or Write that starts its number: an MSN, or the count that arrival hints use.
  void number(SendWqe& wr);
  bool owes_arrival_hint(const SendWqe& wr) const;
  void end_response();
  bool build_arrival_hint();
  void build_last_arrival_hint(bool in_message);
  bool wants_acknowledgement() const;
  bool leave_answer();
  bool leave_question();
  bool ask_acknowledgement();
  void build_question(OutstandingRequest question);
  bool has_arrived(uint64_t index, const SendWqe& wr) const;
  void build_acknowledgements();
  bool build_segment();
  bool build_response_segment();
  void build_immediate(const SendWqe& wr);
  // tx_atomic.cc
  void build_atomic_request(const SendWqe& wr);
  void build_atomic_response(const rdmap::AtomicResponse& response);
  void build_fpdu(uint32_t header_size, const SendWqe* gather, const uint8_t* payload,
                  uint32_t payload_size, uint64_t completed_slot, bool copied = false);
  // Copies payload, and adds it to the running CRC of its FPDU if there is one.
  void copy(uint8_t* to, const void* from, uint32_t size, uint32_t& crc) const {
    if (crc_)
      crc = core::crc32c_copy(crc, to, from, size);
    else
      core::copy(to, from, size);
  }
  template <class Add>
  void for_each_piece(const SendWqe* gather, const uint8_t* payload, uint32_t payload_size,
                      Add&& add);
  void build_marked_fpdu(uint32_t header_size, const SendWqe* gather, const uint8_t* payload,
                         uint32_t payload_size, uint64_t completed_slot);
  bool has_room(uint32_t copied) const;
  void append_terminate(const rdmap::Terminate& terminate);
  // Whether a started WR is done: TCP or the peer has what it sends, the peer has answered it, or
  // it was carried out here.
  bool is_done(uint64_t index, const SendWqe& wr) const {
    return wr.done.load(std::memory_order_acquire) &&
           (acknowledgements_ == Acknowledgements::kNone || has_arrived(index, wr));
  }
  void complete(SendWqe& wr, ibv_wc_status status);
  bool blame(const rdmap::Terminate& terminate);
  bool ensure_batch();
  void raise_no_memory();
  uint32_t next_cookie();

  Shared* shared_ = nullptr;
  mem::LastRegion regions_{mem::Side::kSend};  // valid for one fill()
  TxBatch* batch_ = nullptr;
  Message message_;
  TxFault fault_;
  // tx_refusal.cc
  struct Found {
    ibv_wc_status status = IBV_WC_SUCCESS;
    core::Cause cause = core::Cause::kNone;
    bool any() const { return status != IBV_WC_SUCCESS; }
  } found_;                         // the error of the first WR that has not started
  uint64_t start_limit_ = kNoSlot;  // index of the first WR not to start
  uint32_t emss_ = 0;
  uint32_t mulpdu_ = 0;        // limit for ULPDUs, see set_emss()
  uint32_t batch_limit_ = 0;   // a batch with more bytes than this gets no further FPDU
  uint32_t largest_copy_ = 0;  // bytes copied for one FPDU at most; larger copies (of windows)
                               // check for room themselves
  uint32_t small_ = 0;         // longest message for tx_small.cc
  uint32_t send_msn_ = 1;      // RFC 5041 4.3: per queue, modulo 2^32
  uint32_t request_msn_ = 1;
  uint32_t atomic_response_msn_ = 1;
  core::SipKey secret_;
  uint64_t cookies_ = 0;  // how many were made
  RtrState rtr_ = RtrState::kNone;
  Acknowledgements acknowledgements_ = Acknowledgements::kNone;
  bool new_batch_ = false;  // nothing was picked for the batch yet
  uint64_t unasked_ = 0;    // the slot after the last Send or Write
  uint64_t signaled_ = 0;   // the slot after the last of them that is signaled
  uint64_t asked_ = 0;      // all before this slot are followed by a request that acknowledges them
  uint32_t writes_ = 0;     // started Writes with payload; modulo 2^32
  ArrivalHint told_;        // what the peer knows to have arrived, by hints and answers
  bool rtr_in_batch_ = false;
  bool answer_in_batch_ = false;  // or several
  bool empty_write_ = false;
  bool tells_arrivals_ = false;
  bool capability_hint_sent_ = false;
  Immediates immediates_ = Immediates::kUntold;
  bool long_fpdus_ = false;
  uint32_t position_ = 0;  // where in the stream the batch begins, modulo 512 (RFC 5044 4.3)
  bool crc_ = true;
  bool markers_ = false;  // the peer wants them
  bool response_turn_ = false;
  Left may_leave_, left_;
  bool flushing_ = false;  // a WR completed with an error: all later ones are flushed
};

}  // namespace uiw::qp
