// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Holds the stream of a connection for which there is no queue pair here. By InfiniBand's rules a
// program names whatever number it likes: of a queue pair for datagrams, as UCX does, which wants
// rdma_cm only to exchange private data and to learn of the peer's end. It says what the peer has
// to hear to be established, takes whatever comes for the same, and drops it.
#pragma once

#include "cm/startup_io.h"
#include "engine/deadline.h"
#include "session/queue_pair.h"

namespace uiw::cm {

// Thread: engine.
class StandIn final : private transport::StreamHandler {
 public:
  // Takes the stream over. `observer` hears of the first octets of the peer, or of our own first
  // ones being sent, and of the end, which comes `close_time` after disconnect() at the latest.
  StandIn(engine::Engine& engine, StreamPtr stream, const mpa::Agreement& agreement,
          core::Nanoseconds close_time, session::ConnectionObserver& observer);

  // Looks at octets from here on.
  void receive();
  void disconnect();
  // Nobody wants to hear of the end.
  void leave();

 private:
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override { end(0); }
  void on_error(int error) override { end(error); }
  void on_writable() override { send(); }
  void send();
  void tell_first();
  void overdue() { end(0); }
  void end(int error);

  engine::Engine& engine_;
  StreamPtr stream_;
  const core::Nanoseconds close_time_;
  session::ConnectionObserver& observer_;
  Outbox outbox_;  // the RTR frame
  bool sending_ = false;
  bool first_told_ = false;
  engine::Deadline<StandIn, &StandIn::overdue> deadline_{*this};
};

}  // namespace uiw::cm
