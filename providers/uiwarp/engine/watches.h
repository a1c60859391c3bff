// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The watches of an engine (engine.h): a descriptor that becomes readable at the earliest of their
// deadlines. Other threads set it anew; the engine sleeps on.
#pragma once

#include <atomic>

#include "core/clock.h"
#include "engine/backend.h"
#include "engine/engine.h"

namespace uiw::engine {

// Thread: engine, but for put_off().
class Watches final : public Op {
 public:
  Watches() = default;

  // 0 or errno: EMFILE, ENFILE, ENOMEM.
  int open(Backend& backend);
  // Before the backend is closed: nothing is watched any more, and the operation ends.
  void stop();
  // When it has ended.
  void close();

  void watch(Watch& watch, core::Nanoseconds deadline);
  void unwatch(Watch& watch);
  // Thread: any, while it is watched.
  void put_off(Watch& watch, core::Nanoseconds deadline);

 private:
  void complete(int result, core::Bytes) override;
  Watch* first_due(core::Nanoseconds now) const;
  void settle();
  void set(core::Nanoseconds deadline) const;

  Backend* backend_ = nullptr;
  int fd_ = -1;
  Watch* first_ = nullptr;
  std::atomic<uint32_t> count_{0};
  bool expiring_ = false, stopped_ = false;
};

}  // namespace uiw::engine
