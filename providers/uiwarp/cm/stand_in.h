// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Holds the stream of a connection for which there is no queue pair here. By InfiniBand's rules a
// program may name any number, such as that of a queue pair for datagrams. UCX does so: it uses
// rdma_cm only to exchange private data and to notice the peer's end. The stand-in sends the RTR
// frame that the peer needs to be established, takes the peer's first octets, whatever they are,
// for the peer's RTR frame, and discards all octets.
#pragma once

#include "cm/startup_io.h"
#include "engine/deadline.h"
#include "session/queue_pair.h"

namespace uiw::cm {

// Thread: engine.
class StandIn final : private transport::StreamHandler {
 public:
  // Takes the stream over. `observer` is told of the peer's first octets, or that our RTR frame was
  // sent; and of the end, which comes at most `close_time` after disconnect().
  StandIn(engine::Engine& engine, StreamPtr stream, const mpa::Agreement& agreement,
          core::Nanoseconds close_time, session::ConnectionObserver& observer);

  // Processes octets from here on.
  void receive();
  void disconnect();
  // Ends without calling the observer.
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
