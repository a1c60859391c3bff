// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The queue pairs whose octets are received by whoever polls a completion queue, instead of by the
// engine: a thread that spins on ibv_poll_cq() finds its message without another thread having to
// be woken for it. doc/decisions/006 says what that brings.
//
// They also send: what was posted in quick succession and waits to be sent together
// (session/lingering.cc), and what the socket did not take. Queue pairs that do not receive here
// may be members for that alone.
//
// The engine lends a queue pair when its completion queue is polled in vain again and again, and
// takes it back when the polls cease (and, where they only send, the posts), when the queue is
// armed, or when anything is to be done that is the engine's business. Members and what [receiver]
// marks in session/state.h belong to the holder of the role: a poller while it receives, the engine
// while it lends and takes back. Neither waits for the other.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <new>

#include "core/pages.h"
#include "engine/engine.h"
#include "queue/completion_queue.h"
#include "queue/role.h"

namespace uiw::session {

class State;

class PollGroup final : public queue::Progress, public engine::Watch {
 public:
  // The group of a completion queue, made when there is none; null when out of memory, or when the
  // queue is another engine's. Thread: engine.
  static PollGroup* of(engine::Engine& engine, queue::CompletionQueue& cq);

  // Makes `state` a member, if it is none, and lends it for receiving if that is wanted. False when
  // the group is full or a poller is inside just now. Thread: engine.
  bool lend(State& state, bool receiving);
  // False when a poller is inside just now: it posts `state` to the engine when it leaves, if
  // `come_back`. Thread: engine.
  bool take_back(State& state, bool come_back);

  void progress() override;
  void on_arm() override;

 private:
  // More sockets than this are looked at faster by one wait in the kernel than one by one.
  static constexpr size_t kMost = 16;
  static constexpr size_t kBufferSize = 256 * 1024;

  PollGroup(engine::Engine& engine, queue::CompletionQueue& cq) : engine_(engine), cq_(cq) {}
  void expire() override;
  void remove(size_t index);
  void leave();
  static bool needs_polls(const State& state);
  bool needs_polls() const;     // to receive for any member, or to go on sending
  bool somebody_posts() const;  // something went out since the last look
  void put_off();
  void look_for_silent();

  engine::Engine& engine_;
  queue::CompletionQueue& cq_;
  queue::Role role_;
  std::atomic<size_t> count_{0};         // changed by the holder
  std::array<State*, kMost> members_{};  // the holder's
  std::atomic<bool> sleepy_{false};      // the queue was armed
  core::Pages buffer_;                   // the holder's
  uint32_t vain_ = 0;                    // the holder's
  uint32_t rounds_ = 0;                  // the holder's: times that a poller was here
  core::Nanoseconds interval_ = 0;       // the holder's: until the engine looks
  uint64_t put_off_at_ = 0;              // the holder's, in ticks
  // Thread: engine.
  uint32_t polls_seen_ = 0, rounds_seen_ = 0, looks_missed_ = 0;
};

}  // namespace uiw::session
