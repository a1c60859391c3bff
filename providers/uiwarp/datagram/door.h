// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The UDP socket of a port that queue pair numbers of this process contain, where datagrams for its
// UD queue pairs come and theirs leave. It is open while there are any.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "core/qp_number.h"
#include "core/result.h"
#include "datagram/intake.h"
#include "datagram/queue_pair.h"

namespace uiw::datagram {

class Door final : public Intake {
 public:
  // The door of that port, opened if this is its first user; each user leaves it once. All have the
  // same engine, the first one. Errno: as open_port(), ENOMEM. Thread: any.
  static core::Result<Door*> enter(engine::Engine& engine, uint16_t port);
  // The last one closes it. Thread: engine.
  void leave();

  // Datagrams for its number are delivered to it from now on, until remove() has returned. Thread:
  // any.
  void add(QueuePair& qp);
  void remove(QueuePair& qp);

 private:
  friend struct Doors;
  Door(engine::Engine& engine, uint16_t port, int fd) : Intake(engine, fd), port_(port) {}
  void on_arrival(const Arrival& arrival) override;

  const uint16_t port_;
  std::mutex members_mutex_;  // before a queue pair's
  std::array<QueuePair*, core::kNumbersPerPort> members_{};

  uint32_t users_ = 1;    // under the table's mutex
  Door* next_ = nullptr;  // the same
};

}  // namespace uiw::datagram
