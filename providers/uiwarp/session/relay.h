// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The observer of a connection whose queue pair lives on another engine than the observer does: it
// passes on there what it hears here.
#pragma once

#include <atomic>
#include <memory>

#include "engine/engine.h"
#include "session/queue_pair.h"

namespace uiw::session {

class Relay final : public ConnectionObserver, private engine::Task {
 public:
  // `observer`, which may be null, is told on `engine`.
  Relay(engine::Engine& engine, ConnectionObserver* observer)
      : engine_(engine), observer_(observer) {}

  // From now on it is there until the connection has ended, whoever else has it. Thread: any.
  static void begin(const std::shared_ptr<Relay>& relay) { relay->self_ = relay; }
  // The observer hears nothing any more. Thread: the observer's engine.
  void forget() { observer_ = nullptr; }

  // Thread: the queue pair's engine.
  void on_first_fpdu() override { pass_on(kFirstFpdu); }
  void on_connection_ended(int error) override {
    error_ = error;
    pass_on(kEnded);
  }

 private:
  enum : uint32_t { kFirstFpdu = 1, kEnded = 2 };

  void pass_on(uint32_t news) {
    if (news_.fetch_or(news, std::memory_order_acq_rel) == 0) engine_.post(*this);
  }
  void run() override {
    const uint32_t news = news_.exchange(0, std::memory_order_acq_rel);
    if ((news & kFirstFpdu) && observer_) observer_->on_first_fpdu();
    if (!(news & kEnded)) return;
    if (observer_) observer_->on_connection_ended(error_);
    const std::shared_ptr<Relay> last = std::move(self_);
  }

  engine::Engine& engine_;
  ConnectionObserver* observer_;   // thread: the observer's engine
  int error_ = 0;                  // until kEnded, then the observer's engine's
  std::atomic<uint32_t> news_{0};  // that run() has not seen
  std::shared_ptr<Relay> self_;
};

}  // namespace uiw::session
