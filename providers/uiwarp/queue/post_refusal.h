// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which rule a work request breaks that is refused when it is posted, and by how much. Kept while a
// lock of the queue is held, told when it is not any more.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "core/explain.h"

namespace uiw::queue {

enum class PostRule : uint8_t {
  kNone,           // nothing was refused
  kOpcode,         // the queue pair does not have it: `asked`
  kSges,           // num_sge
  kMessage,        // bytes in all
  kNoInline,       // the opcode sends nothing that could be inline
  kInline,         // bytes
  kAtomicSize,     // its SGEs have no room for the 8 bytes of the answer
  kAtomicAddress,  // the remote address is no multiple of 8
  kBinding,        // no window or no region
  kNoAddress,      // a datagram without an address handle (0), or with another domain's (1)
  kFull,           // of `allowed` places that all are taken `asked` have no completion of their own
  kStillFull,      // as kFull before, and that was told
};

struct PostRefusal {
  PostRule rule = PostRule::kNone;
  uint64_t wr_id = 0, asked = 0, allowed = 0;
  uint64_t waiting = 0;  // kFull: places whose requests are done, and wait to be polled

  int error() const {
    if (rule == PostRule::kNone) return 0;
    return rule == PostRule::kFull || rule == PostRule::kStillFull ? ENOMEM : EINVAL;
  }
};

// What a send queue has refused last. Thread: who holds the queue's lock.
class LastRefusal {
 public:
  // Its errno.
  [[gnu::cold, gnu::noinline]] int note(PostRule rule, const ibv_send_wr& wr, uint64_t asked,
                                        uint64_t allowed);
  // All `depth` places are taken. `count` of those that are not signalled is called once: who posts
  // until a queue is full does so often, and it may be deep. `waiting`: as in PostRefusal.
  template <class Count>
  [[gnu::cold, gnu::noinline]] int note_full(const ibv_send_wr& wr, uint32_t depth, Count&& count,
                                             uint64_t waiting) {
    const bool again = std::exchange(was_full_, true);
    note(again ? PostRule::kStillFull : PostRule::kFull, wr, again ? 0 : count(), depth);
    refused_.waiting = waiting;
    return refused_.error();
  }
  // Once.
  PostRefusal take() { return std::exchange(refused_, {}); }

 private:
  PostRefusal refused_;
  bool was_full_ = false;
};

// ibv_post_send of this queue pair. Nothing for kNone.
void explain(core::Told& told, uint32_t qp_num, const PostRefusal& refused);

class ReceiveQueue;
// ibv_post_recv in this state, with or without a shared receive queue: 0 or EINVAL.
int refuse_post_recv(core::Told& told, uint32_t qp_num, const void* srq);
inline int check_post_recv(core::Told& told, uint32_t qp_num, ibv_qp_state state, const void* srq) {
  if (!srq && state != IBV_QPS_RESET) [[likely]]
    return 0;
  return refuse_post_recv(told, qp_num, srq);
}
// ibv_post_recv: what ReceiveQueue::post() has refused with `error`.
void explain(core::Told& told, uint32_t qp_num, const ReceiveQueue& queue, const ibv_recv_wr& wr,
             int error);
// ibv_post_srq_recv.
void explain(core::Told& told, const ReceiveQueue& queue, const ibv_recv_wr& wr, int error);

}  // namespace uiw::queue
