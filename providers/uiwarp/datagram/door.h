// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The UDP socket of a port that queue pair numbers of this process contain, where datagrams for its
// UD queue pairs come and theirs leave. It is open while there are any.
//
// The engine receives; or, by a lease (progress/lease.h), a thread that busy-polls the completion
// queue that the datagrams are received by, for all queue pairs of the port.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "core/qp_number.h"
#include "core/result.h"
#include "datagram/intake.h"
#include "datagram/queue_pair.h"
#include "progress/grant_policy.h"
#include "progress/lease.h"

namespace uiw::datagram {

class Door final : public Intake, private progress::Member {
 public:
  // The door of that port, opened if this is its first user; each user leaves it once. All have the
  // same engine, the first one. Errno: as open_port(), ENOMEM. Thread: any.
  static core::Result<Door*> enter(engine::Engine& engine, uint16_t port);
  // The last one closes it; if a poller receives just now, when that leaves, unless somebody has
  // entered by then. Thread: engine.
  void leave();

  // Datagrams for its number are delivered to it from now on, until remove() has returned. Thread:
  // any.
  void add(QueuePair& qp);
  void remove(QueuePair& qp);

  // Whether pollers receive now. Thread: engine.
  bool is_leased() const { return lease(); }

 private:
  friend struct Doors;
  Door(engine::Engine& engine, uint16_t port, int fd) : Intake(engine, fd), port_(port) {}
  void on_arrival(const Arrival& arrival) override;
  void on_received(uint64_t bytes) override;
  std::shared_ptr<queue::CompletionQueue> queue_of_latest();
  void ask_back();
  void take_back();

  // progress::Member. What is sent never waits.
  bool send_deferred() override { return false; }
  bool send_coalesced() override { return false; }
  void send_overdue(uint64_t, uint64_t, bool) override {}
  uint64_t waits_since() const override { return UINT64_MAX; }
  bool has_unsent() const override { return false; }
  bool send_on() override { return false; }
  bool is_sending() const override { return false; }
  bool receive(std::span<uint8_t> buffer) override {
    return receive_now(buffer.first(kPolledAtOnce * kReceiveRoom));
  }
  void pause_receiving() override { pause(); }
  void return_wanted() override { ask_back(); }
  void post_to_engine() override { ask_back(); }
  void on_revoked(bool was_received) override;

  // The engine is to take the door back.
  struct Back final : engine::Task {
    explicit Back(Door& its) : door(its) {}
    void run() override {
      posted.store(false, std::memory_order_release);
      door.take_back();
    }
    Door& door;
    std::atomic<bool> posted{false};
  } back_{*this};

  // Datagrams that a poll receives: it mostly finds one or none, and prepares for each.
  static constexpr size_t kPolledAtOnce = 8;
  const uint16_t port_;
  std::mutex members_mutex_;  // before a queue pair's
  std::array<QueuePair*, core::kNumbersPerPort> members_{};
  uint8_t latest_ = 0;      // the member that got a datagram last
  uint32_t delivered_ = 0;  // datagrams, so far

  // Thread: engine.
  progress::GrantPolicy grants_;
  const queue::CompletionQueue* judged_ = nullptr;  // by grants_; to be told from another
  std::shared_ptr<queue::CompletionQueue> leased_;  // whose pollers receive
  bool ending_ = false;  // the last user has left; another one may have entered

  uint32_t users_ = 1;    // under the table's mutex
  Door* next_ = nullptr;  // the same
};

}  // namespace uiw::datagram
