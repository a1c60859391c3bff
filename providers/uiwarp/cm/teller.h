// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells the descriptors of channels whether events are queued.
#pragma once

#include <atomic>
#include <mutex>

#include "cm/id.h"
#include "core/list.h"
#include "engine/engine.h"

namespace uiw::cm {

// What the engine queues it tells at the end of its turn, and without the manager's lock: whoever
// wakes takes its CPU, mostly, and wants the lock. Then a thread wakes once for all that a turn has
// brought, and finds the lock free. Others tell at once, of what
// the engine has queued as well.
//
// All but run(): the manager's lock is held.
class Teller final : private engine::Task {
 public:
  explicit Teller(std::mutex& lock) : lock_(lock) {}

  // An event was queued, or was taken or purged. `engine`: on which the manager has its endpoints,
  // or null.
  void queued(Channel& channel, engine::Engine* engine);
  void taken(Channel& channel);
  // The channel is about to close. Waits, without the lock, while the engine is telling it.
  void leave(Channel& channel, std::unique_lock<std::mutex>& hold);

 private:
  void run() override;

  std::mutex& lock_;
  core::List<Channel, &Channel::untold> untold_;
  bool posted_ = false;
  std::atomic<Channel*> telling_{nullptr};  // the engine is inside its EventSink::tell()
};

}  // namespace uiw::cm
