// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Somebody who came to a door: says who he is and whom he means, waits for that queue pair, is
// challenged by it and proves that he is its peer.
// Thread: engine.
#pragma once

#include "core/list.h"
#include "rendezvous/proof.h"
#include "startup/frames.h"

namespace uiw::rendezvous {

class Door;

class Guest final : private transport::StreamHandler, private engine::Timer {
 public:
  enum class Step {
    kUnknown,     // he has not said who he is
    kWaiting,     // for the queue pair that he means
    kChallenged,  // his proof is to come
    kProven,      // it has come, right or wrong
  };

  // Reports to door.introduce() when he has said who he is, to door.judge() when he has given his
  // proof, and to door.leave() when he goes before he was taken: when the peer closes, breaks the
  // rules or takes too long.
  static void receive(Door& door, engine::Engine& engine, transport::StreamPtr stream);
  ~Guest();

  Step step() const { return step_; }
  // From kWaiting on: his hello.
  const HandshakeMessage& hello() const { return hello_; }
  const mpa::StartupFrame& request() const { return request_; }  // his last
  // From kProven on: whether it was right.
  bool proof_is_right() const { return given_proof_ == right_proof_; }
  const core::SipKey& opening() const { return opening_; }
  Stage challenged_in() const { return challenged_in_; }  // of the queue pair
  transport::TcpStream& stream() { return *stream_; }
  // The stream with nothing unread; he himself has to leave then.
  transport::StreamPtr take_stream();

  // The queue pair has sent its challenge, which `opening` will open and `proof` answers.
  void challenged(uint64_t proof, const core::SipKey& opening, Stage in);

  Door& door() { return door_; }

  core::ListLink<Guest> link;       // of the door
  core::ListLink<Guest> among_all;  // of all doors

 private:
  Guest(Door& door, engine::Engine& engine, transport::StreamPtr stream)
      : door_(door), engine_(engine), stream_(std::move(stream)) {}
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override;
  void on_error(int error) override;
  void on_writable() override {}
  void expire() override;
  const char* understand(core::Bytes behind);

  Door& door_;
  engine::Engine& engine_;
  transport::StreamPtr stream_;
  startup::FrameCollector collector_;
  mpa::StartupFrame request_;
  HandshakeMessage hello_;
  Step step_ = Step::kUnknown;
  uint64_t right_proof_ = 0, given_proof_ = 0;
  core::SipKey opening_;
  Stage challenged_in_ = Stage::kRtr;
};

using GuestList = core::List<Guest, &Guest::link>;
using AllGuests = core::List<Guest, &Guest::among_all>;

}  // namespace uiw::rendezvous
