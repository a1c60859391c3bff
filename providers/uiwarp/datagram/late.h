// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Datagrams of a queue pair that are kept for a while before they come to it, since an instrument
// wants it so. Those that come meanwhile overtake them.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "core/clock.h"
#include "datagram/kept.h"
#include "engine/engine.h"

namespace uiw::datagram {

class Late final : private engine::Task, private engine::Timer {
 public:
  static constexpr size_t kMost = 1024;

  // `receiver` is told of them, on the engine's thread.
  Late(engine::Engine& engine, Receiver& receiver) : engine_(engine), receiver_(receiver) {}
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;

  // It comes so much later. False: it does not, since kMost wait, or memory is short. Thread: any.
  bool add(const Arrival& arrival, core::Nanoseconds delay);
  // What waits never comes. Thread: any.
  void clear();
  // Likewise, and when this returns nothing of it runs any more. Behind the last add(). Thread:
  // engine.
  void end();

 private:
  void run() override;
  void expire() override;
  void arm();

  engine::Engine& engine_;
  Receiver& receiver_;
  std::mutex mutex_;
  std::multimap<core::Nanoseconds, Kept> waiting_;  // under mutex_, by when they are due
  bool is_posted_ = false;                          // under mutex_: run() is to come
};

}  // namespace uiw::datagram
