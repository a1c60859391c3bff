// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One thread at a time posts to a queue, so that the list of its requests has the order in which
// the stack takes them.
#pragma once

#include <atomic>
#include <cstdint>

namespace uiw::check {

// As a mutex, but of no thread: a program may begin a section in one thread and end it in another.
// The stack locks the queue for the same time, so this lets nobody wait who would not wait there.
class Turn {
 public:
  void take() {
    while (is_taken_.exchange(1) != 0) is_taken_.wait(1);
  }
  // Nothing happens when it is not taken.
  void give() {
    is_taken_.store(0);
    is_taken_.notify_one();
  }

 private:
  std::atomic<int32_t> is_taken_{0};  // of a futex's size
};

// Has the turn while it lives.
class InTurn {
 public:
  explicit InTurn(Turn& turn) : turn_(turn) { turn_.take(); }
  ~InTurn() { turn_.give(); }
  InTurn(const InTurn&) = delete;

 private:
  Turn& turn_;
};

}  // namespace uiw::check
