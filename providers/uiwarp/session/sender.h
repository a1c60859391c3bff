// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The sending side of a connection. Whoever holds its role runs it: an application thread that
// posts or polls, or the engine. A lone message costs one system call and no thread hand-over. The
// engine and pollers leave requests in one word and run the sender if nobody else does; the sender
// answers by the engine's doorbell (state.h). Neither ever waits for the other.
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

// What the sender is asked for. Each is forgotten once it is done.
enum SenderRequest : uint32_t {
  kSendOnStream = 1u << 0,    // State::stream is to be sent on
  kHandleError = 1u << 1,     // State::plan is written: flush, build the Terminate
  kDrain = 1u << 2,           // send what is posted, then FIN
  kFinish = 1u << 3,          // send what is begun, then FIN: the peer has closed
  kLetGo = 1u << 4,           // touch the stream no more
  kWakePeer = 1u << 5,        // an empty Write, should the peer have overlooked what came first
  kHasRoom = 1u << 6,         // the socket takes bytes again
  kTakeTurn = 1u << 7,        // a poster did its share; the engine's turn has come
  kSendLeft = 1u << 8,        // what was left to go with something else is sent now
  kReleaseRegions = 1u << 9,  // somebody waits for a region that is held while the socket is full
  kTellCompleted = 1u << 10,  // ring kSendsComplete when what TCP has taken is complete
  kDiscard = 1u << 11,        // no peer has come in time: drop what is posted until one does
  kTellArrivals = 1u << 12,   // what has arrived, to a peer whose question waits behind a Send
};

class Sender final : public mem::PinHolder {
 public:
  explicit Sender(State& owner) : owner_(owner) {}
  ~Sender() { UIW_ASSERT(!now_.keeps_regions); }  // or the table would keep a pointer to it

  // Something may be to send: runs the sender, or its holder looks again. Thread: any.
  void try_run();
  // The same, with something asked for (SenderRequest bits). Thread: any.
  void ask(uint32_t requests);
  // The request is still to be looked at. Thread: any.
  bool is_asked(SenderRequest request) const {
    return (asked_.load(std::memory_order_acquire) & request) != 0;
  }
  // Somebody runs it. False: what the last holder did can be seen. Thread: any.
  bool is_running() const { return role_.held(); }
  // Of the stream, since the connection began. Thread: any.
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

  // What it found; valid once the doorbell bit named was seen. Thread: engine.
  const EndPlan& found() const { return now_.found; }          // kErrorFound
  int failure() const { return now_.failure; }                 // kSendFailed: a positive errno
  bool blamed_by_peer() const { return now_.blamed_by_peer; }  // kErrorHandled
  bool lets_go_of(uint32_t stag, bool now);                    // as QueuePair's. Thread: any
  // For RESET: nobody runs it from try_hold() on until let_go(); begin_anew() in between. False: a
  // thread is inside just now. Thread: engine, when no connection is left.
  bool try_hold() { return role_.try_enter(); }
  void begin_anew();
  void let_go();
  // Regions that were kept for the stream are free. Thread: engine, after kSenderStopped.
  void forget_regions();

 private:
  enum class Stage : uint8_t {
    kNoStream,    // nothing may be sent yet
    kDiscarding,  // the same, and what is posted is dropped (unreliable service)
    kStarting,    // the RTR, if one was agreed, is still to go out
    kSending,
    kFinSent,  // nothing more follows
    kLetGo,    // the stream is the engine's again
  };
  // Why nothing is handed to TCP although there may be something.
  enum class Waits : uint8_t {
    kForNothing,
    kForRoom,    // the socket is full
    kForEngine,  // the poster did its share, kContinue is on its way
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
  std::atomic<uint64_t> bytes_sent_{0};  // the holder writes

  // The holder's; begins anew with RESET.
  struct Course {
    uint32_t requests = 0;  // taken from asked_, not done yet
    Stage stage = Stage::kNoStream;
    Waits waits = Waits::kForNothing;
    Closing closing = Closing::kNot;
    bool error_handled = false;  // flushed; only a Terminate and FIN may follow
    bool keeps_regions = false;  // the table knows; until kSenderStopped
    bool blamed_by_peer = false;
    uint32_t calls_since_emss = 0;
    int failure = 0;
    EndPlan found;
    transport::TcpStream* stream = nullptr;
    WireWatch* watch = nullptr;  // of the stream; null: nobody wants to know
  } now_;
};

}  // namespace uiw::session
