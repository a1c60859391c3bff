// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An accepted connection that has not yet proven to be a queue pair's peer. It sends a hello with
// its own name and that of the queue pair, waits until the queue pair challenges it, and answers
// with its proof. Thread: engine.
#pragma once

#include "core/list.h"
#include "rendezvous/proof.h"
#include "startup/frames.h"

namespace uiw::rendezvous {

class QpnListener;

class PendingPeer final : private transport::StreamHandler, private engine::Timer {
 public:
  enum class Step {
    kUnknown,     // its hello has not come
    kWaiting,     // waits for the queue pair that it asks for
    kChallenged,  // its proof has not come
    kProven,      // the proof has come, right or wrong
  };

  // Calls listener.hello_received() when the hello has come, listener.proof_received() when the
  // proof has come, and listener.remove() or listener.refuse() when the peer closes, breaks the
  // rules or takes too long.
  static void receive(QpnListener& listener, engine::Engine& engine, transport::StreamPtr stream);
  ~PendingPeer();

  Step step() const { return step_; }
  // Valid from kWaiting on.
  const HandshakeMessage& hello() const { return hello_; }
  const mpa::StartupFrame& request() const { return request_; }  // the last one
  // Valid from kProven on.
  bool proof_is_right() const { return given_proof_ == right_proof_; }
  const core::SipKey& opening() const { return opening_; }
  Stage challenged_in() const { return challenged_in_; }  // the queue pair's stage at that time
  transport::TcpStream& stream() { return *stream_; }
  // Gives up the stream, which has nothing unread. Destroy this object afterwards.
  transport::StreamPtr take_stream();

  // The queue pair has sent its challenge. `proof` is the right answer, `opening` the key of the
  // commitment in the challenge.
  void challenged(uint64_t proof, const core::SipKey& opening, Stage in);

  QpnListener& listener() { return listener_; }

  core::ListLink<PendingPeer> link;       // of the listener
  core::ListLink<PendingPeer> among_all;  // of all listeners

 private:
  PendingPeer(QpnListener& listener, engine::Engine& engine, transport::StreamPtr stream)
      : listener_(listener), engine_(engine), stream_(std::move(stream)) {}
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override;
  void on_error(int error) override;
  void on_writable() override {}
  void expire() override;
  const char* understand(core::Bytes behind);

  QpnListener& listener_;
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

using PendingPeerList = core::List<PendingPeer, &PendingPeer::link>;
using AllPendingPeers = core::List<PendingPeer, &PendingPeer::among_all>;

}  // namespace uiw::rendezvous
