// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The watches of an engine (engine.h). They share a timerfd that becomes readable at the earliest
// of their deadlines. Other threads can set it without waking the engine.
#pragma once

#include <atomic>

#include "core/clock.h"
#include "core/spinlock.h"
#include "engine/backend.h"
#include "engine/engine.h"

namespace uiw::engine {

// Thread: engine, but for put_off().
class Watches final : public Op {
 public:
  Watches() = default;

  // 0 or errno: EMFILE, ENFILE, ENOMEM.
  int open(Backend& backend);
  // Call it before the backend is closed: ends all watches and cancels the operation.
  void stop();
  // Call it when the operation has ended.
  void close();

  void watch(Watch& watch, core::Nanoseconds deadline);
  void unwatch(Watch& watch);
  // Thread: any, while it is watched.
  void put_off(Watch& watch, core::Nanoseconds deadline);

 private:
  void complete(int result, core::Bytes) override;
  Watch* take_due(core::Nanoseconds now);  // it is no longer watched
  void unlink(Watch& watch);               // under the lock
  void settle();                           // under the lock
  void wait();

  Backend* backend_ = nullptr;
  int fd_ = -1;
  bool expiring_ = false, stopped_ = false;  // the engine's
  core::Spinlock lock_;
  Watch* first_ = nullptr;                        // changed by the engine, under lock_
  core::Nanoseconds set_to_ = Backend::kForever;  // under lock_: the time that the timerfd is set
                                                  // to
};

}  // namespace uiw::engine
