// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Inside a queue pair. Who may touch what (doc/threading.md):
//   [any]     constant after create(), atomic, or locked by itself
//   [engine]  the engine thread
//   [receiver]  the engine; while pollers receive, the holder of their lease (progress/lease.h)
// The sender (session/sender.h) has its own state. It rings the engine's doorbell (Doorbell); the
// engine leaves it requests (SenderRequest).
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <semaphore>
#include <span>

#include "counters/published_state.h"
#include "engine/deadline.h"
#include "progress/deferral.h"
#include "progress/grant_policy.h"
#include "progress/lease.h"
#include "qp/connection.h"
#include "queue/dropped_receives.h"
#include "session/end_plan.h"
#include "session/life.h"
#include "session/queue_pair.h"
#include "session/receiver.h"
#include "session/sender.h"
#include "session/wire_watch.h"
#include "transport/silence.h"

namespace uiw::session {

// How long what is to be sent to a peer that has gone waits until it fails.
constexpr core::Nanoseconds kLastHope = core::kSecond;

// Reasons for the engine's task to run, from the sender and others.
enum Doorbell : uint32_t {
  kStart = 1u << 0,  // process leftover octets, then receive
  kRtrSent = 1u << 1,
  kWantWritable = 1u << 2,  // the socket is full
  kContinue = 1u << 3,      // the poster did its share, the engine carries on
  kErrorHandled = 1u << 4,  // send queue flushed, Terminate built
  kFinSent = 1u << 5,
  kSenderStopped = 1u << 6,   // the sender will not touch the stream again
  kSendFailed = 1u << 7,      // the socket has failed for good: Sender::failure()
  kDisconnect = 1u << 8,      // from any thread: graceful close wanted
  kReceivePosted = 1u << 9,   // a receive was posted for the Send that waits
  kDestroy = 1u << 10,        // ~QueuePair waits, or modify(RESET)
  kErrorFound = 1u << 11,     // Sender::found() is set: the engine is to begin the end
  kFail = 1u << 12,           // from any thread: a completion queue has overflowed
  kReturn = 1u << 13,         // from any thread: revoke the lease
  kStopped = 1u << 14,        // from a poller: only the engine may go on, see
                              // Receiver::on_stopped()
  kBurst = 1u << 15,          // from a poster: requests are posted in a burst
  kPeerMissed = 1u << 16,     // there is something to send, and the peer has gone
  kGiveBack = 1u << 17,       // from any thread: somebody waits for a region
  kSendsComplete = 1u << 18,  // requests that TCP had taken are completed: go on receiving
  kPeerSilent = 1u << 19,     // the peer's host does not answer any more
  kToError = 1u << 20,        // from any thread: ibv_modify_qp to ERR
  kBreak = 1u << 21,          // from any thread: an instrument resets the connection
  kDeafen = 1u << 22,         // from any thread: `deaf` has changed
  kFarewell = 1u << 23,       // from any thread: the program is about to end the connection
};
// For these the engine need not revoke the lease first.
constexpr uint32_t kNeedsNoReceiver = kRtrSent | kWantWritable | kContinue | kBurst | kPeerMissed |
                                      kGiveBack | kSendsComplete | kDeafen;

class State final : public engine::Task, public progress::Member {
 public:
  State(engine::Engine& on, const QueuePairOptions& wanted) : engine(on), options(wanted) {}

  engine::Engine& engine;                             // [any]
  const QueuePairOptions options;                     // [any]
  core::Told refusals;                                // [any] for messages about refused calls
  std::unique_ptr<qp::SendQueue> send_queue;          // [any]
  std::unique_ptr<queue::ReceiveQueue> own_receives;  // [any] null with an SRQ
  queue::ReceiveQueue* receives = nullptr;            // [any]
  // Name this queue pair to the completion queues. Replaced only by reset(), with the connection.
  std::unique_ptr<queue::CompletionSource> send_source, recv_source;
  counters::PublishedState state{*options.counters, options.first_state};  // [any]
  std::atomic<int> access_flags{0};      // [any] as ibv_modify_qp set them
  std::atomic<uint32_t> ird{0}, ord{0};  // [any] for ibv_query_qp
  std::atomic<bool> by_number{false};    // [any] expect_peer() was called
  std::atomic<bool> deaf{false};  // [any] nothing from the peer may arrive: QueuePair::deafen()
  // [any] How long a peer that owes an answer may be silent; 0: forever, as far as this stack
  // decides.
  std::atomic<core::Nanoseconds> patience_with_peer{0};
  std::atomic<uint8_t> timeout{0};           // [any] the same, as ibv_query_qp returns it
  std::atomic<bool> awaits_receives{false};  // [any] the peer's Send waits for its receive forever
  // Used by [engine], the sender and [receiver]. Replaced only by reset(), which keeps all three
  // out.
  std::unique_ptr<qp::Connection> connection;
  core::Spinlock connection_lock;  // held while reset() replaces it, and by callers that may come
                                   // at any time

  // From here on each part begins a new cache line: posters and the engine work at the same time,
  // on two processors.

  alignas(64) Sender sender{*this};

  // One error ends a connection. All errors begin on the engine, which stops receiving first: no
  // octet may be placed for a work request that was flushed.
  EndPlan plan;  // [engine] until kHandleError, then constant

  // --- posters (leasing.cc) ---
  // [any] The lease whose pollers may send what is deferred. It is a lease of one of this queue
  // pair's own completion queues and lives as long as that. Only the engine writes this.
  // The engine writes.
  alignas(64) std::atomic<progress::Lease*> pollers{nullptr};
  std::atomic<uint32_t> unleased_posts{0};      // [any] of bursts
  progress::DeferredPosts deferred_posts;       // [any]
  progress::Deferral coalesced_reads;           // [any]
  progress::Deferral waiting_acknowledgements;  // [any] our empty Reads, and answers to the peer's
  // [any] FPDUs that are built wait for a poller to send them, not before `retry_at` (ticks).
  std::atomic<bool> unsent{false};
  std::atomic<uint64_t> retry_at{0};

  alignas(64) Receiver receiver{*this};

  // --- engine ---
  // [engine] and [receiver]. The sender reads it once, at kSendOnStream.
  transport::StreamPtr stream;
  // [engine] The sender and [receiver] use it with the stream. Null unless FPDUs are traced.
  std::unique_ptr<WireWatch> watch;
  progress::GrantPolicy grants;                     // [engine]
  std::shared_ptr<queue::CompletionQueue> foreign;  // [engine] pollers of this one receive
  ConnectionObserver* observer = nullptr;           // [engine]
  Life life;                                        // [engine]
  transport::Silence silence;
  uint64_t octets_at_silence = 0;       // bytes_sent() at the last look_after_peer()
  core::Nanoseconds probed_within = 0;  // last value given to probe_idle()
  std::atomic<uint32_t> doorbell{0};    // [any]
  // [any] Keeps flushed receives in order. Also keeps RESET from replacing the connection and the
  // source that they are flushed with.
  core::Spinlock flush_lock;
  bool flushes_receives = false;                    // under flush_lock: fail_receives() was called
  std::binary_semaphore released{0};                // the thread that rang kDestroy waits for it
  std::atomic<Farewell> farewell{Farewell::kNone};  // written by the engine
  std::binary_semaphore farewell_over{0};           // once released, stays so until RESET

  // any thread
  void ring(uint32_t bits);  // the engine's doorbell
  // Returns when the engine has done it. Not on an engine's thread.
  void ring_and_wait(uint32_t bit);
  const char* why_not(ibv_qp_state now, ibv_qp_state to) const;  // null: ibv_modify_qp may move it
  bool may_post() const;  // call between send_queue's begin() and end()
  int refuse_post();      // ibv_post_send's errno if not may_post()
  void end_refused(bool publish);
  // queues.cc. In an error state. Receives that are posted before fail_receives() stay posted until
  // then: the receive that a message has taken completes first.
  void flush_receives();

  // leasing.cc, any thread
  void after_post(uint32_t requests, uint64_t bytes);
  bool may_defer(uint32_t requests, uint64_t bytes);
  qp::Tx::Left may_leave();       // [sender]
  bool leave(qp::Tx::Left what);  // [sender] false: there is no lease any more
  void send_later(Doorbell bit);  // [sender] a poller goes on, or the engine when `bit` is rung
  void retry_later();             // [sender] the socket is full

  // progress::Member, leasing.cc
  bool send_deferred() override;
  bool send_coalesced() override { return send_waiting(coalesced_reads, false); }
  bool send_waiting(progress::Deferral& what, bool left);  // true when there was something
  void send_overdue(uint64_t now, uint64_t ticks, bool left) override;
  uint64_t waits_since() const override {
    return std::min(deferred_posts.waits_since(), coalesced_reads.waits_since());
  }
  bool has_unsent() const override { return unsent.load(std::memory_order_relaxed); }
  bool send_on() override { return send_unsent(false); }
  bool send_unsent(bool at_once);  // true when bytes went
  bool is_sending() const override { return sender.is_running(); }
  bool receive(std::span<uint8_t> buffer) override { return receiver.receive_polled(buffer); }
  void pause_receiving() override { stream->pause_receive(); }
  void return_wanted() override { ring(kReturn); }
  void post_to_engine() override { engine.post(*this); }
  void on_revoked(bool was_received) override;

  void run() override;  // state.cc, [engine]

  // leasing.cc, [engine]
  bool owns_receiver();  // false: run() is called again later
  void consider_grant(size_t bytes, size_t directly);
  std::shared_ptr<queue::CompletionQueue> find_busy_poller(size_t bytes);  // null: nobody's
  void on_full_socket();
  void join_pollers();
  progress::Lease* lease_of(queue::CompletionQueue& cq);

  // farewell.cc
  void say_farewell();
  void let_peer_ask();
  bool waits_for_question() const {
    return farewell.load(std::memory_order_acquire) == Farewell::kWaits;
  }
  bool leave_soon();        // QueuePair::leave()
  void begin_farewell();    // [engine]
  void look_at_farewell();  // [engine]
  void end_farewell();      // [engine]

  // silence.cc, [engine]
  void watch_peer();
  void look_after_peer();
  void on_peer_silent();

  // lifecycle.cc, [engine]
  int attach(transport::StreamPtr&& new_stream, const mpa::Agreement& agreement,
             core::Bytes leftover, ConnectionObserver* new_observer, QueuePair::Receiving when);
  void abandon();
  void begin_error(const EndPlan& new_plan);
  void error_handled_by_sender();
  void begin_disconnect();
  void on_peer_closed();
  void on_stream_error(int error);
  void on_fin_sent();
  void on_send_failed();
  void break_off(int error);
  bool give_up_sender();
  void reset_connection();
  void fail_connection(const EndPlan& why);
  EndPlan plan_for_broken_stream(int stream_error) const;
  uint64_t octets_moved() const { return sender.bytes_sent() + receiver.arrivals(); }
  void arm_close_timer();
  void look_at_close_later();
  void look_at_close();
  void lose_peer();
  void miss_peer();
  PeerWanted peer_wanted() const;
  void give_up_peer();
  void end_connection();
  void sender_stopped();
  void begin_destroy();
  // What is made anew for a new queue pair and at RESET.
  struct Beginning {
    std::unique_ptr<qp::Connection> connection;
    queue::CompletionSources sources;
    explicit operator bool() const { return connection && sources; }
  };
  bool reset(Beginning& beginning);  // false: not now, try again

  // queues.cc, [engine]. create_queues() and purge_completions() also on other threads, while none
  // else has the queue pair.
  bool create_queues();        // false: no memory
  Beginning make_beginning();  // any thread; false: no memory
  void empty_queues(Beginning&& beginning);
  void begin_with(Beginning&& beginning);
  void fail_receives();                                      // [engine]
  [[nodiscard]] queue::DroppedReceives purge_completions();  // [engine]

  // [engine]
  engine::Deadline<State, &State::look_at_close> close_timer{*this};
  engine::Deadline<State, &State::give_up_peer> miss_timer{*this};
  engine::Deadline<State, &State::look_after_peer> silence_timer{*this};
  engine::Deadline<State, &State::end_farewell> farewell_timer{*this};
};

}  // namespace uiw::session
