// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The transmit machine of one connection: work requests and the peer's Read and Atomic Requests in,
// FPDUs out, send completions out. Pure: no socket, thread or clock. Thread: the holder of the QP's
// sender role.
//
//   while (tx.fill()) { n = send(tx.pieces()); tx.consume(n); }
//
// Messages are never interleaved (RFC 5041 5.3): one is sent to its end before the next begins.
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

// Why transmission cannot go on: a mistake of this side, found before anything of it was sent.
struct TxFault {
  bool raised = false;
  rdmap::Terminate terminate;  // what the peer is to be told
  bool local_access =
      false;  // IBV_EVENT_QP_ACCESS_ERR rather than QP_FATAL fits: a region went away
  core::Cause cause = core::Cause::kNoMemory;
};

class Tx {
 public:
  Tx() = default;
  ~Tx();
  Tx(const Tx&) = delete;
  Tx& operator=(const Tx&) = delete;

  // Before the first fill(). `secret` makes the cookies of our Reads and atomics unpredictable.
  void start(Shared& shared, uint32_t emss, const core::SipKey& secret);
  // RFC 5044 4.5: MULPDU follows the EMSS, or is several of it (qp/long_fpdus.h); with CRC there is
  // a limit besides. Applies to FPDUs not built yet.
  void set_emss(uint32_t emss);

  // Builds what may be sent now, if nothing is pending yet. True: pieces() is not empty.
  // False: nothing to do, or fault() was raised.
  bool fill();
  // What may go with what is sent later, although nothing hinders it; and what the last fill() left
  // of that.
  struct Left {
    bool reads = false;    // Reads and atomics, while they are few beside those on their way
    bool answers = false;  // to empty Reads, while the peer may ask once more and nothing else goes
    bool questions = false;  // empty Reads, while no request that they are behind is signaled
    bool any() const { return reads || answers || questions; }
  };
  void may_leave(Left what) { may_leave_ = what; }
  Left left() const { return left_; }
  std::span<const iovec> pieces() const;
  // TCP has taken `octets` of pieces(): the WRs that went with them are done.
  void consume(uint64_t octets);
  bool pending() const { return batch_ && !batch_->empty(); }
  // Whether pieces() lie in registered regions, which cannot be deregistered meanwhile. And whether
  // a deregistration waits.
  bool holds_regions() const { return batch_ && batch_->holds_memory(); }
  bool holds_revoked_regions() const { return batch_ && batch_->holds_revoked(); }
  // Lets go of them; what they hold of pieces() is copied. False when out of memory.
  bool release_regions();
  // Forgets pieces(), and the regions that they lie in. Unless all were sent, nothing may follow.
  void drop_pieces();

  // Completes, in posting order, the WRs that are done. Also after a Read or atomic was completed
  // by Rx.
  void retire();
  // Builds, whatever may not be sent any more, the answers to empty Reads that are due, if nothing
  // is pending: a peer whose messages were received is to know (tx_acknowledgements.cc). True:
  // pieces() is not empty.
  bool fill_acknowledgements();

  const TxFault& fault() const { return fault_; }
  // The RTR frame was taken by TCP (RFC 6581 5), or none had to be sent.
  bool rtr_sent() const { return rtr_ == RtrState::kNone && !(batch_ && rtr_in_batch_); }
  // One more FPDU of the initiator's without WR and without completion at either end: a Write
  // without data. It goes between two messages.
  void add_empty_write() { empty_write_ = !fault_.raised; }
  // The peer's question lies behind a Send that waits for its receive: what has arrived before is
  // said without, between two messages.
  void tell_arrivals() { tells_arrivals_ = !fault_.raised; }
  // Graceful close: WRs posted from now on are not started any more (flush() completes them), nor
  // those that a responder may not send yet where no RTR frame was agreed: the peer may never say
  // anything.
  void stop_starting() {
    const bool goes_out = may_send() || shared_->agreement.rtr != mpa::Rtr::kNone;
    start_limit_ = goes_out ? shared_->send_queue->posted() : shared_->send_queue->started();
  }
  // The peer has closed: nothing is started any more, and it will not answer either.
  void stop_starting_now() {
    start_limit_ = shared_->send_queue->started();
    acknowledgements_ = Acknowledgements::kAskNoMore;
  }
  // Whether nothing that is posted to `queue`, which is this connection's also before it has begun,
  // reads memory of that region any more. What is built is copied. `now`: what is not built fails.
  // False also when out of memory.
  bool lets_go_of(SendQueue& queue, uint32_t stag, bool now);
  // Nothing to start, pending or unanswered: the moment for a graceful FIN.
  bool idle() const;
  // Has responses or a begun message to finish (the peer may have closed its side already).
  bool owes_octets() const;

  // The error end. Finishes no more than the FPDU begun, adds the Terminate, then completes
  // everything outstanding: the WR that is to blame with its own status, the rest with
  // IBV_WC_WR_FLUSH_ERR. Afterwards only pieces()/consume() and flush() make sense. Returns true
  // when a WR was blamed.
  struct Cause {
    const rdmap::Terminate* send = nullptr;      // to tell the peer
    const rdmap::Terminate* received = nullptr;  // told by the peer: may name one of our WRs
    uint64_t failed_slot = kNoSlot;              // our request whose response was wrong
    ibv_wc_status failed_status = IBV_WC_SUCCESS;
  };
  bool abandon(const Cause& cause);
  // After abandon() or without a connection: completes WRs posted since with IBV_WC_WR_FLUSH_ERR.
  void flush(Shared& shared);
  // Unreliable service without a connection, or whose connection has ended: completes what is
  // posted as if it had been sent. What this end alone does is done, and what is wrong here is an
  // error all the same: then fault() was raised.
  void discard(Shared& shared);

 private:
  // Whether all payload is. The kernel reads it later than it is built, and what it lies in may be
  // written to meanwhile, by the program, its other threads and the peers of a region: that may
  // tear what arrives, as an adapter's memory accesses do, but the CRC has to be the CRC of what is
  // sent (RFC 5044 4.4), or the peer ends the connection. doc/decisions/020-copies-under-a-crc.md
  bool copies_all() const { return crc_ || markers_; }
  bool to_copy(uint32_t payload) const {
    return copies_all() || payload <= core::tuning::kMostCopied;
  }
  enum class RtrState : uint8_t { kNone, kPending };
  struct Message {
    enum Kind : uint8_t { kNone, kSend, kWrite, kImmediate, kReadResponse } kind = kNone;
    uint64_t slot = kNoSlot;
    uint64_t offset = 0, length = 0;
    uint32_t segment = 0;         // bytes of payload in each, as hinted; 0: as the MULPDU has it
    bool length_hint = false;     // one is to be sent before it
    bool immediate_hint = false;  // the same
    uint32_t sge = 0, sge_offset = 0;
  };

  // What makes Sends and Writes complete.
  enum class Acknowledgements : uint8_t {
    kNone,       // TCP has taken them
    kAsk,        // the peer has them: it is asked when a batch ends, or the next one begins
    kAskNoMore,  // the same; the peer will not answer what it is asked from now on
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
    kUntold,  // we have not said that we take immediate hints
    kTold,    // we have
    kAsked,   // and the peer's answer to a question behind that is to come, or has come
  };
  bool owes_immediates_hint() const;
  bool build_immediates_hint();
  bool ask_immediates();
  // tx_acknowledgements.cc
  // A Send or Write has started, which ends before the slot `behind`.
  void has_started(const SendWqe& wr, uint64_t behind) {
    unasked_ = behind;
    if (wr.signaled) signaled_ = behind;
  }
  // Numbers a Send or Write that starts, as arrival hints do.
  void number(SendWqe& wr);
  bool owes_arrival_hint(const SendWqe& wr) const;
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
  // Copies what goes out, and has it in the running value of its FPDU's CRC where there is one.
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
  // Whether TCP, or the peer, has what this started WR sends; or has answered it; or it has taken
  // effect here.
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
  mem::LastRegion regions_{mem::Side::kSend};  // for one fill()
  TxBatch* batch_ = nullptr;
  Message message_;
  TxFault fault_;
  // tx_refusal.cc
  struct Found {
    ibv_wc_status status = IBV_WC_SUCCESS;
    core::Cause cause = core::Cause::kNone;
    bool any() const { return status != IBV_WC_SUCCESS; }
  } found_;                         // what is wrong with the first request that has not started
  uint64_t start_limit_ = kNoSlot;  // index of the first WR not to start
  uint32_t emss_ = 0;
  uint32_t mulpdu_ = 0;        // or less, see set_emss()
  uint32_t batch_limit_ = 0;   // a batch of more bytes gets no further FPDU
  uint32_t largest_copy_ = 0;  // of an FPDU; what of a window's is more asks for itself
  uint32_t small_ = 0;         // bytes of a message that goes the short way, at most
  uint32_t send_msn_ = 1;      // RFC 5041 4.3: per queue, modulo 2^32
  uint32_t request_msn_ = 1;
  uint32_t atomic_response_msn_ = 1;
  core::SipKey secret_;
  uint64_t cookies_ = 0;  // made so far
  RtrState rtr_ = RtrState::kNone;
  Acknowledgements acknowledgements_ = Acknowledgements::kNone;
  bool new_batch_ = false;  // nothing was picked for it yet
  uint64_t unasked_ = 0;    // behind the last Send or Write: the slot
  uint64_t signaled_ = 0;   // behind the last of them that makes a completion
  uint64_t asked_ = 0;      // all before this slot is behind a request
  uint32_t writes_ = 0;     // of some bytes that have started; modulo 2^32
  ArrivalHint told_;        // the last one
  bool rtr_in_batch_ = false;
  bool empty_write_ = false;
  bool tells_arrivals_ = false;
  bool capability_hint_sent_ = false;
  Immediates immediates_ = Immediates::kUntold;
  bool long_fpdus_ = false;
  uint32_t position_ = 0;  // modulo 512, of the stream where the batch begins (RFC 5044 4.3)
  bool crc_ = true;
  bool markers_ = false;  // the peer wants them
  bool response_turn_ = false;
  Left may_leave_, left_;
  bool flushing_ = false;  // an error was completed: everything after it is flushed
};

}  // namespace uiw::qp
