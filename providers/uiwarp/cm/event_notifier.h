// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Makes the descriptors of channels readable while events are queued.
#pragma once

#include <atomic>
#include <mutex>

#include "cm/id.h"
#include "core/list.h"
#include "engine/deadline.h"
#include "engine/engine.h"

namespace uiw::cm {

// For events queued by the engine, the sink is notified at the end of the engine's turn and without
// the manager's lock. The reason is that a thread that wakes usually gets the engine's CPU and
// wants the lock. So it wakes once for all events of a turn and finds the lock free. Other threads
// notify at once, which also covers events that the engine has queued.
//
// An event that is queued behind unfetched ones notifies again: the kernel wakes pollers for each
// event, and a program that waits for edges (EPOLLET) may have consumed the last one.
//
// Under --shake, events queued by the engine are held back for a while, drawn for each channel and
// each time (cm/lateness.h): until then is_late() says that there is nothing to fetch.
//
// The manager's lock is held in every function but run() and engine_goes().
class EventNotifier final : private engine::Task {
 public:
  explicit EventNotifier(std::mutex& lock) : lock_(lock) {}

  // Numbers the channel. Call it before any other function for the channel.
  void opened(Channel& channel);

  // An event was queued (`engine`: the one that runs the manager's endpoints, or null); an event
  // was fetched or discarded.
  void queued(Channel& channel, engine::Engine* engine);
  void taken(Channel& channel);
  // The channel is about to close. Waits, without the lock, while the engine is in the channel's
  // notify().
  void leave(Channel& channel, std::unique_lock<std::mutex>& hold);
  static bool is_late(const Channel& channel) { return channel.due != 0; }
  // Stops using the engine, which may end now, unless a notification is pending. Thread: engine.
  void engine_goes(engine::Engine& engine);

 private:
  void run() override;
  static void draw_lateness(Channel& channel, const engine::Engine& engine);
  static void mark(Channel& channel);
  void withdraw(Channel& channel);
  Channel* first_due(core::Nanoseconds now);

  std::mutex& lock_;
  uint64_t opened_ = 0;
  engine::Engine* engine_ = nullptr;  // the one that queued last
  engine::Deadline<EventNotifier, &EventNotifier::run> later_{*this};
  core::List<Channel, &Channel::pending_notification> pending_;
  bool posted_ = false;
  std::atomic<Channel*> notifying_{nullptr};  // the engine is in this channel's EventSink::notify()
};

}  // namespace uiw::cm
