// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Somebody who came to a door: first reads his MPA Request, then waits for the queue pair he means.
// Thread: engine.
#pragma once

#include "core/list.h"
#include "rendezvous/greeting.h"
#include "startup/frames.h"

namespace uiw::rendezvous {

class Door;

class Guest final : private transport::StreamHandler, private engine::Timer {
 public:
  // Reports to door.introduce() when he has said who he is, and to door.leave() when he goes before
  // he was taken: when the peer closes, breaks the rules or takes too long.
  static void receive(Door& door, engine::Engine& engine, transport::StreamPtr stream);
  ~Guest();

  // Whether the two below are set.
  bool introduced() const { return introduced_; }
  const Greeting& greeting() const { return greeting_; }
  const mpa::StartupFrame& request() const { return request_; }
  transport::TcpStream& stream() { return *stream_; }
  // The stream with nothing unread; he himself has to leave then.
  transport::StreamPtr take_stream();

  core::ListLink<Guest> link;  // of the door

 private:
  Guest(Door& door, engine::Engine& engine, transport::StreamPtr stream)
      : door_(door), engine_(engine), stream_(std::move(stream)) {}
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override;
  void on_error(int error) override;
  void on_writable() override {}
  void expire() override;
  bool understand(core::Bytes behind);

  Door& door_;
  engine::Engine& engine_;
  transport::StreamPtr stream_;
  startup::FrameCollector collector_;
  mpa::StartupFrame request_;
  Greeting greeting_;
  bool introduced_ = false;
};

using GuestList = core::List<Guest, &Guest::link>;

}  // namespace uiw::rendezvous
