// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Makes the descriptors of channels readable while events are queued.
#pragma once

#include <atomic>
#include <mutex>

#include "cm/id.h"
#include "core/list.h"
#include "engine/engine.h"

namespace uiw::cm {

// For events that the engine queues, the descriptor is notified at the end of the engine's turn and
// without the manager's lock: a thread that wakes usually takes the engine's CPU and wants the
// lock. So it wakes once for all events of a turn and finds the lock free. Other threads notify at
// once, also for events that the engine has queued.
//
// The manager's lock is held in every function but run().
class EventNotifier final : private engine::Task {
 public:
  explicit EventNotifier(std::mutex& lock) : lock_(lock) {}

  // An event was queued; an event was fetched or discarded. `engine`: the one that runs the
  // manager's endpoints, or null.
  void queued(Channel& channel, engine::Engine* engine);
  void taken(Channel& channel);
  // The channel is about to close. Waits, without the lock, while the engine is in its notify().
  void leave(Channel& channel, std::unique_lock<std::mutex>& hold);

 private:
  void run() override;

  std::mutex& lock_;
  core::List<Channel, &Channel::pending_notification> pending_;
  bool posted_ = false;
  std::atomic<Channel*> notifying_{nullptr};  // whose EventSink::notify() the engine is in
};

}  // namespace uiw::cm
