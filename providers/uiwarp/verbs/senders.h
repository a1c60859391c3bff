// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The queue pairs that send from the memory of a protection domain, and what they have to let go of
// before a region goes. Thread: any.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/list.h"
#include "session/queue_pair.h"

namespace uiw::verbs {

class Senders {
 public:
  // One of them. In one domain only.
  class Member {
    friend class Senders;
    session::QueuePair* queue_pair = nullptr;  // null: it is being destroyed, and may still send
    uint64_t has_let_go = 0;                   // of the region that this wait was for
    core::ListLink<Member> link;
  };

  void add(Member& member, session::QueuePair& queue_pair);
  // It is about to be destroyed: nobody asks it any more, but waits until it has left.
  void begin_to_leave(Member& member);
  void leave(Member& member);

  // Whether none needs the memory of this region any more for what is posted, within kLastSends;
  // with `now`, whatever becomes of that.
  bool let_go_of(uint32_t stag, bool now);

 private:
  std::mutex mutex_;
  core::List<Member, &Member::link> members_;  // under mutex_
  uint64_t waits_ = 0;                         // under mutex_: so many so far
};

}  // namespace uiw::verbs
