// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The queue pairs that send from the memory of a protection domain. Before a region is
// deregistered, they are asked to let go of it. Thread: any.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/list.h"
#include "session/queue_pair.h"

namespace uiw::verbs {

class Senders {
 public:
  // One queue pair; in one domain only.
  class Member {
    friend class Senders;
    session::QueuePair* queue_pair = nullptr;  // null: being destroyed, and may still send
    uint64_t has_let_go = 0;                   // the number of the last wait in which it has let go
    core::ListLink<Member> link;
  };

  void add(Member& member, session::QueuePair& queue_pair);
  // It is about to be destroyed: let_go_of() no longer asks it, but waits until it has left.
  void begin_to_leave(Member& member);
  void leave(Member& member);

  // True: within kLastSends all members have sent, or copied, what is posted from this region.
  // `now`: requests that cannot be sent fail (QueuePair::lets_go_of()).
  bool let_go_of(uint32_t stag, bool now);

 private:
  std::mutex mutex_;
  core::List<Member, &Member::link> members_;  // under mutex_
  uint64_t waits_ = 0;                         // under mutex_: number of calls to let_go_of()
};

}  // namespace uiw::verbs
