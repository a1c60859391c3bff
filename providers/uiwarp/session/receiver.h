// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The receiving side of a connection: passes bytes from the stream to the receive machine
// (qp/rx.h). Runs on the engine or, while pollers hold a lease, on the thread that polls.
// lifecycle.cc decides what the machine's result means for the connection.
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

// Why receiving from an established connection is paused.
enum class Pause : uint8_t {
  kNone,        // not paused
  kForReceive,  // the peer's Send waits for a receive to be posted
  kForSender,   // the peer's Send may answer requests that are not completed yet; it waits for
                // kSendsComplete
};

// Thread: engine, unless stated otherwise.
class Receiver final : public transport::StreamHandler,
                       public qp::SendsFirst,
                       public queue::ReceiveWaiter {
 public:
  explicit Receiver(State& owner) : owner_(owner) {}

  // Copies the octets that came behind the peer's start-up frame; start() processes them. False:
  // out of memory.
  bool keep(core::Bytes leftover);
  // From now on it handles what arrives on the stream.
  void start();
  // A receive was posted.
  void resume();
  // Requests that TCP had taken when kTellCompleted was asked for are completed.
  void on_sends_complete();
  // Ends every wait: for a receive, the sender or a silent peer.
  void stop();
  // For RESET.
  void begin_anew() { now_ = {}; }

  // How often the engine has processed bytes.
  uint32_t arrivals() const { return now_.arrivals; }
  // It waits for nothing but bytes: a poller may take over.
  bool is_settled() const { return now_.pause == Pause::kNone && now_.first_fpdu_told; }

  // The peer has gone: shortens the wait of a Send for its receive.
  void hurry();
  // The peer has closed, and requests of this end are outstanding: the Send that waits is dropped,
  // so that their answers behind it, and the end, are found.
  void drop_waiting();
  bool waits_for_receive() const { return now_.pause == Pause::kForReceive; }

  // Receives once for a poller; bytes that cannot be placed directly go into `buffer`. True when
  // bytes came. Where only the engine may go on, it stops receiving and leaves the rest to
  // on_stopped(). Thread: the lease's holder.
  bool receive_polled(std::span<uint8_t> buffer);
  void on_stopped();
  bool was_stopped() const { return now_.stopped_by.has_value(); }  // and on_stopped() is to come
  // The lease was revoked: the engine receives again.
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
  // What made a poller stop.
  struct Stop {
    long result = 0;  // 0 or -errno: the end of the stream; 1: see `status`
    qp::RxStatus status = qp::RxStatus::kOk;
  };

  // Receives once: directly into place if that is known, else into `buffer`. Returns how many
  // bytes, 0 or -errno; `status` is the receive machine's result.
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
  // Belongs to the thread that receives; RESET begins it anew.
  struct Course {
    std::optional<Stop> stopped_by;
    Pause pause = Pause::kNone;
    core::Nanoseconds waits_since = 0;  // begin of kForReceive; 0 without instruments
    bool first_fpdu_told = false;       // the observer was told of the peer's first FPDU
    unsigned wakes = 0;                 // empty Writes asked for
    bool sends_complete = false;        // the sender has just confirmed it; during resume() only
    uint32_t arrivals = 0;
    std::unique_ptr<uint8_t[]> leftover;  // until start()
    size_t leftover_size = 0;
  } now_;
  engine::Deadline<Receiver, &Receiver::on_receive_timeout> receive_timer_{*this};
  engine::Deadline<Receiver, &Receiver::on_silence> wake_timer_{*this};
};

}  // namespace uiw::session
