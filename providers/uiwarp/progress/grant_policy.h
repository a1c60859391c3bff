// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Decides which completion queue's pollers make progress for a queue pair: a thread that busy-polls
// then finds its message without another thread having to be woken for it. Pure: observations come
// in, the grant goes out. Not for concurrent use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/tuning.h"

namespace uiw::progress {

// How a completion queue was used so far. The counters wrap.
struct QueueUse {
  uint32_t empty_polls = 0, polls = 0, arms = 0;
};

// Whether somebody busy-polled a queue between two looks at it.
class BusyPoll {
 public:
  // `quick`: there was hardly time for empty polls, so any poll counts as busy-polling.
  bool look(const QueueUse& now, bool quick) {
    const QueueUse before = std::exchange(seen_, now);
    if (now.arms != before.arms) return false;
    return now.empty_polls - before.empty_polls >= core::tuning::kPollsOfBusyPoller ||
           (quick && now.polls != before.polls);
  }

 private:
  QueueUse seen_;
};

// Bytes that the engine has received for a queue pair, and how its queues were used until then.
struct Arrival {
  core::Nanoseconds at = 0;
  size_t bytes = 0;
  uint32_t completed = 0;    // messages, since the connection began
  bool mid_message = false;  // more of the last one is to come
  QueueUse send_queue, receive_queue;
};

enum class Grant : uint8_t {
  kNone,
  kToSendQueue,     // the pollers of the send CQ receive
  kToReceiveQueue,  // the pollers of the receive CQ receive
  kAskForeign,      // nobody polls either: find out whether a foreign queue is busy-polled
};

class GrantPolicy {
 public:
  Grant on_arrival(const Arrival& a) {
    const bool soon = a.at - std::exchange(arrived_at_, a.at) < core::tuning::kSoon;
    const bool completes = std::exchange(completed_, a.completed) != a.completed;
    const bool quick = completes && a.bytes <= core::tuning::kSmallArrival && soon;
    const bool continues = std::exchange(mid_message_, a.mid_message);
    Grant busy = Grant::kNone;
    if (send_.look(a.send_queue, quick)) busy = Grant::kToSendQueue;
    if (receive_.look(a.receive_queue, quick)) busy = Grant::kToReceiveQueue;
    if (busy != Grant::kNone) return ++streak_ >= core::tuning::kArrivals ? busy : Grant::kNone;
    // Between the pieces of one message the program has no reason to poll.
    if (!continues) streak_ = 0;
    return ++unpolled_ % core::tuning::kArrivalsPerForeignLook == 0 ? Grant::kAskForeign
                                                                    : Grant::kNone;
  }

  // After kAskForeign: whether the pollers of `queue`, the last one that was busy-polled, are to
  // receive. `bytes_sent`: by the queue pair since its connection began. A queue pair that sends
  // large answers does not qualify: they fill the socket, and the engine would sleep until it has
  // room.
  bool foreign_is_busy(const void* queue, const QueueUse& use, uint64_t bytes_sent) {
    const bool same = std::exchange(foreign_queue_, queue) == queue;
    const bool busy = foreign_.look(use, false);
    const uint64_t sent = bytes_sent - std::exchange(sent_at_look_, bytes_sent);
    const bool small = sent <= core::tuning::kForeignAnswer * core::tuning::kArrivalsPerForeignLook;
    foreign_streak_ = same && busy && small ? foreign_streak_ + 1 : 0;
    return foreign_streak_ >= core::tuning::kArrivals;
  }

  // The socket is full. True: the pollers of the send CQ are to continue sending. A full socket
  // without busy polls before it does not reset the count: a poller that shares its processor, and
  // yields, does not get to busy-poll before each of them.
  bool on_full_socket(core::Nanoseconds now, const QueueUse& send_queue) {
    if (now - full_since_ > core::tuning::kFullSocketsWithin) {
      full_since_ = now;
      full_streak_ = 0;
    }
    if (when_full_.look(send_queue, false)) ++full_streak_;
    if (full_streak_ < core::tuning::kArrivals) return false;
    full_streak_ = 0;
    return true;
  }

  // The grant was revoked; the pollers have to qualify again.
  void on_revoked() { streak_ = foreign_streak_ = 0; }

 private:
  BusyPoll send_, receive_, when_full_, foreign_;
  uint32_t streak_ = 0, foreign_streak_ = 0, full_streak_ = 0, unpolled_ = 0;
  uint32_t completed_ = 0;
  bool mid_message_ = false;
  core::Nanoseconds arrived_at_ = 0, full_since_ = 0;
  const void* foreign_queue_ = nullptr;  // compared only, never dereferenced
  uint64_t sent_at_look_ = 0;
};

}  // namespace uiw::progress
