// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The receiving side of a connection: bytes from the stream to the receive machine (qp/rx.h), by
// the engine or, while the connection has a lease, by whoever polls. What they mean for the
// connection is for lifecycle.cc to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/bytes.h"
#include "core/clock.h"
#include "engine/deadline.h"
#include "qp/rx.h"
#include "qp/shared.h"
#include "queue/receive_queue.h"
#include "transport/tcp_stream.h"

namespace uiw::session {

class State;

// Why nothing is received from a connection that stands.
enum class Pause : uint8_t {
  kNone,        // it is received
  kForReceive,  // a Send waits for a receive to be posted
  kForSender,   // a Send waits for requests to complete that it may answer: kSendsComplete comes
};

// Thread, unless something else is said: engine.
class Receiver final : public transport::StreamHandler,
                       public qp::SendsFirst,
                       public queue::ReceiveWaiter {
 public:
  explicit Receiver(State& owner) : owner_(owner) {}

  // What came behind the peer's start-up frame, copied; received at start(). False: out of memory.
  bool keep(core::Bytes leftover);
  // From now on it is told of what the stream brings.
  void start();
  // A receive was posted.
  void resume();
  // What TCP had taken when kTellCompleted was asked for is complete.
  void on_sends_complete();
  // Nothing more is waited for, and the stream is not listened to beyond its end.
  void stop();
  // Everything anew, for RESET.
  void begin_anew() { now_ = {}; }

  // How often bytes were looked at.
  uint32_t arrivals() const { return now_.arrivals; }
  // It waits neither for the program nor for anything else: a poller may take over.
  bool is_settled() const { return now_.pause == Pause::kNone && now_.first_fpdu_told; }

  // The peer has gone: a Send that waits for its receive does not much longer.
  void hurry();
  bool waits_for_receive() const { return now_.pause == Pause::kForReceive; }

  // One receive by a poller, into `buffer` what has no other place; true when bytes came. What only
  // the engine may deal with it leaves to on_stopped(), and receives no more. Thread: the lease's
  // holder.
  bool receive_polled(std::span<uint8_t> buffer);
  void on_stopped();
  bool was_stopped() const { return now_.stopped_by.has_value(); }  // and on_stopped() is to come
  // It is the engine's again, which goes on.
  void take_back();

  // transport::StreamHandler
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override;
  void on_error(int error) override;
  void on_writable() override;
  // qp::SendsFirst. Thread: whoever receives.
  bool sends_first(bool answered) override;
  // queue::ReceiveWaiter. Thread: any.
  void on_receive_posted() override;

 private:
  // What a poller came upon.
  struct Stop {
    long result = 0;  // 0 or -errno: the end of the stream; 1: `status`
    qp::RxStatus status = qp::RxStatus::kOk;
  };

  // One receive, to where the bytes belong if that is known, else into `buffer`: how many, 0 or
  // -errno; `status` is what the receive machine says to them.
  long receive_once(std::span<uint8_t> buffer, qp::RxStatus& status);
  size_t receive_directly();  // how many bytes
  void hear_news();
  void handle(qp::RxStatus status);
  void pause_for(Pause reason);
  void wait_for_receive();
  core::Nanoseconds patience() const;
  void tell_of_wait(bool gave_up);
  void on_receive_timeout();
  void on_silence();

  State& owner_;
  // Whoever receives has this; it begins anew with RESET.
  struct Course {
    std::optional<Stop> stopped_by;
    Pause pause = Pause::kNone;
    core::Nanoseconds waits_since = 0;  // kForReceive, where an instrument is told
    bool first_fpdu_told = false;       // the peer's, to the observer
    unsigned wakes = 0;                 // empty Writes asked for
    bool sends_complete = false;        // of all that was received: said by the sender a moment ago
    uint32_t arrivals = 0;
    std::unique_ptr<uint8_t[]> leftover;  // until start()
    size_t leftover_size = 0;
  } now_;
  engine::Deadline<Receiver, &Receiver::on_receive_timeout> receive_timer_{*this};
  engine::Deadline<Receiver, &Receiver::on_silence> wake_timer_{*this};
};

}  // namespace uiw::session
