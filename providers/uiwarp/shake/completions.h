// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The completions of a queue that have been taken from the next table and not handed out. What is
// told to the program is a story in which each of them came when it was handed out, or was due
// then: those of one work queue in their order, whoever arms finds behind it all that came before,
// and behind an event the one that it tells of. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/clock.h"
#include "shake/temper.h"

namespace uiw::shake {

// Those of one send or receive queue.
class Lane {
 public:
  // `number` tells it from all others of the process.
  explicit Lane(uint64_t number) : number_(number) {}

  // How many the program has been given, ever, and whether one of them had failed since forget().
  // Thread: any.
  uint64_t given() const { return given_.load(std::memory_order_acquire); }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // How many are held. Thread: any.
  size_t held() const { return held_count_.load(std::memory_order_acquire); }

 private:
  friend class Completions;
  struct Held {
    ibv_wc wc;
    core::Nanoseconds due;
    uint64_t nth;  // from 0, of those added to the queue
    bool is_owed;  // the next poll that has room must give it
  };
  uint64_t number_;
  uint64_t added_ = 0;
  std::deque<Held> held_;
  std::atomic<size_t> held_count_{0};
  std::atomic<uint64_t> given_{0};
  std::atomic<bool> has_failed_{false};
};

// Thread: one at a time.
class Completions {
 public:
  Completions(const core::ShakeOptions& options, uint64_t number)
      : options_(options), number_(number) {}

  // It was taken from the next table at `now`.
  void add(Lane& lane, const ibv_wc& wc, core::Nanoseconds now);
  // Up to `count` of those that are there for the program; how many.
  int poll(int count, ibv_wc* out, core::Nanoseconds now);

  // What the next arming does.
  ArmingPlan next_arming() { return arming_of(options_, number_, armings_++); }
  // The queue is being armed: all that was added before came before.
  void arm(bool solicited_only);
  // Until a poll finds fewer than it asked for, it finds all that the next table had: the program
  // has been told something by which it may know that they are there.
  void show_all();

  // Those of that lane are not to be handed out: their wr_ids.
  std::vector<uint64_t> forget(Lane& lane);

  struct Waiting {
    uint32_t all = 0, messages = 0;  // of `all`, receives that have succeeded
  };
  Waiting waiting() const;

 private:
  // Which completion raises an event, as far as is known here.
  enum class Armed : uint8_t {
    kNot,        // none that is still to be added
    kSolicited,  // some; which, a completion does not say
    kAny,        // the next one
  };
  bool take_owed_sign();
  void owe_all();
  // Whether all of the queue are given in the order in which they were added.
  bool keeps_order() const { return !options_.takes(core::Liberty::kOrder); }
  int poll_by_turns(int count, ibv_wc* out, core::Nanoseconds now, const PollPlan& plan);
  int poll_in_order(int count, ibv_wc* out, core::Nanoseconds now, const PollPlan& plan);
  // Takes what may be given of one lane, `turn` at most; how many.
  int take(Lane& lane, int turn, ibv_wc* out, core::Nanoseconds now, uint64_t& spare);

  core::ShakeOptions options_;
  uint64_t number_;
  uint64_t added_ = 0, given_ = 0, armings_ = 0;
  Armed armed_ = Armed::kNot;
  bool shows_all_ = false;
  std::vector<Lane*> busy_;  // those that hold some
};

}  // namespace uiw::shake
