// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The sending side of a connection. The thread that holds its role runs it: an application thread
// that posts or polls, or the engine. So a lone message costs one system call and no hand-over
// between threads. The engine and pollers leave requests as bits in one word, and run the sender if
// no other thread does. The sender answers by the engine's doorbell (state.h). No thread waits for
// another.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/assert.h"
#include "mem/table.h"
#include "queue/role.h"
#include "session/end_plan.h"

namespace uiw::transport {
class TcpStream;
}

namespace uiw::session {

class State;
class WireWatch;

// What the sender is asked to do. A request is cleared once it is done.
enum SenderRequest : uint32_t {
  kSendOnStream = 1u << 0,    // start to send on State::stream
  kHandleError = 1u << 1,     // State::plan is set: flush, build the Terminate
  kDrain = 1u << 2,           // send what is posted, then FIN
  kFinish = 1u << 3,          // the peer has closed: send what is begun, then FIN
  kLetGo = 1u << 4,           // do not touch the stream any more
  kWakePeer = 1u << 5,        // send an empty Write, in case the peer has overlooked the first FPDU
  kHasRoom = 1u << 6,         // the socket has room again
  kTakeTurn = 1u << 7,        // a poster did its share; the engine's turn has come
  kSendLeft = 1u << 8,        // send now what was deferred to be sent with something else
  kReleaseRegions = 1u << 9,  // a thread waits for a region that is held while the socket is full
  kTellCompleted = 1u << 10,  // ring kSendsComplete once the requests that TCP has taken are
                              // completed
  kDiscard = 1u << 11,        // no peer has connected in time: drop what is posted until one does
  kTellArrivals = 1u << 12,   // tell the peer what has arrived: its question waits behind a Send
  kAnswerNoMore = 1u << 13,   // kHandleError waits for no answers any more
};

class Sender final : public mem::PinHolder {
 public:
  explicit Sender(State& owner) : owner_(owner) {}
  ~Sender() { UIW_ASSERT(!now_.keeps_regions); }  // else the table would keep a pointer to it

  // There may be something to send: runs the sender, or has the role's holder look again. Thread:
  // any.
  void try_run();
  // The same, with SenderRequest bits. Thread: any.
  void ask(uint32_t requests);
  // The sender has not seen this request yet. Thread: any.
  bool is_asked(SenderRequest request) const {
    return (asked_.load(std::memory_order_acquire) & request) != 0;
  }
  // A thread holds the role. False: what the last holder did is visible to the caller. Thread: any.
  bool is_running() const { return role_.held(); }
  // Bytes sent on the stream since the connection began. Thread: any.
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

  // What the sender found; valid once the engine has seen the doorbell bit named. Thread: engine.
  const EndPlan& found() const { return now_.found; }          // kErrorFound
  int failure() const { return now_.failure; }                 // kSendFailed: a positive errno
  bool blamed_by_peer() const { return now_.blamed_by_peer; }  // kErrorHandled
  bool lets_go_of(uint32_t stag, bool now);                    // as QueuePair's. Thread: any
  // For RESET: between try_hold() and let_go() no thread runs the sender; call begin_anew() in
  // between. False: a thread holds the role just now. Thread: engine, when no connection is left.
  bool try_hold() { return role_.try_enter(); }
  void begin_anew();
  void let_go();
  // Releases the regions that were held for the stream. Thread: engine, after kSenderStopped.
  void forget_regions();

 private:
  enum class Stage : uint8_t {
    kNoStream,    // there is none yet
    kDiscarding,  // the same, and what is posted is dropped (unreliable service)
    kStarting,    // the RTR, if one was agreed, is still to go out
    kSending,
    kFinSent,  // nothing more follows
    kLetGo,    // the stream is the engine's again
  };
  // Why nothing is handed to TCP although there may be something to send.
  enum class Waits : uint8_t {
    kForNothing,
    kForRoom,    // the socket is full
    kForEngine,  // the poster did its share; kContinue was rung, or a poller goes on
    kForEver,    // the socket failed
  };
  // When FIN is due.
  enum class Closing : uint8_t {
    kNot,
    kWhenPostedIsSent,
    kWhenBegunIsSent,
  };

  void run();
  bool take(SenderRequest request);
  bool answers_first();
  void handle_error();
  void acknowledge_last();
  void pump();
  long send_pieces();              // bytes that TCP has taken, or -errno
  bool send_once(bool on_engine);  // false: stop for now
  bool keep_regions();             // false: out of memory
  bool give_back_revoked();        // false: out of memory
  void report_fault();
  void report_error(const EndPlan& error);
  void send_failed(int error);
  void finish_if_due();
  bool has_begun() const { return now_.stage > Stage::kDiscarding; }
  void do_without_peer();
  void discard();
  void give_back() override;  // thread: any

  State& owner_;
  queue::Role role_;
  std::atomic<uint32_t> asked_{0};
  std::atomic<uint64_t> bytes_sent_{0};  // written by the role's holder

  // Belongs to the role's holder; RESET begins it anew.
  struct Course {
    uint32_t requests = 0;  // taken from asked_, not done yet
    Stage stage = Stage::kNoStream;
    Waits waits = Waits::kForNothing;
    Closing closing = Closing::kNot;
    bool error_handled = false;  // flushed; only a Terminate and FIN may follow
    bool keeps_regions = false;  // joined the memory table; until kSenderStopped
    bool blamed_by_peer = false;
    uint32_t calls_since_emss = 0;
    int failure = 0;
    EndPlan found;
    transport::TcpStream* stream = nullptr;
    WireWatch* watch = nullptr;  // of the stream; null: FPDUs are not traced
  } now_;
};

}  // namespace uiw::session
