// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Forwards observer callbacks between engines: from the queue pair's engine to the observer's,
// where these differ.
#pragma once

#include <atomic>
#include <memory>

#include "engine/engine.h"
#include "session/queue_pair.h"

namespace uiw::session {

class Relay final : public ConnectionObserver, private engine::Task {
 public:
  // `observer` is called on `engine`; may be null.
  Relay(engine::Engine& engine, ConnectionObserver* observer)
      : engine_(engine), observer_(observer) {}

  // From now on the relay keeps itself alive until the connection has ended. Thread: any.
  static void begin(const std::shared_ptr<Relay>& relay) { relay->self_ = relay; }
  // The observer is not called any more. Thread: the observer's engine.
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
  int error_ = 0;                  // written before kEnded, then read by the observer's engine
  std::atomic<uint32_t> news_{0};  // not seen by run() yet
  std::shared_ptr<Relay> self_;
};

}  // namespace uiw::session
