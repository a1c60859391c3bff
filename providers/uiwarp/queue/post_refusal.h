// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which rule a refused post breaks, and by how much. Noted while a lock of the queue is held,
// logged after it was released.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "core/explain.h"

namespace uiw::queue {

enum class PostRule : uint8_t {
  kNone,           // nothing was refused
  kOpcode,         // the queue pair does not support opcode `asked`
  kSges,           // num_sge
  kMessage,        // total bytes
  kNoInline,       // the opcode has no payload that could be inline
  kInline,         // bytes
  kAtomicSize,     // the SGEs have no room for the 8 bytes of the answer
  kAtomicAddress,  // the remote address is no multiple of 8
  kBinding,        // no window or no region
  kNoAddress,      // a datagram without an address handle (`asked` 0), or with one of another
                   // domain (1)
  kFull,           // all `allowed` places are taken, `asked` of them by requests that are not
                   // signaled
  kStillFull,      // like kFull, which was noted before
};

struct PostRefusal {
  PostRule rule = PostRule::kNone;
  uint64_t wr_id = 0, asked = 0, allowed = 0;
  uint64_t waiting = 0;  // kFull: places whose requests are done and wait to be polled

  int error() const {
    if (rule == PostRule::kNone) return 0;
    return rule == PostRule::kFull || rule == PostRule::kStillFull ? ENOMEM : EINVAL;
  }
};

// What a send queue has refused last. Thread: the holder of the queue's lock.
class LastRefusal {
 public:
  // Returns its errno.
  [[gnu::cold, gnu::noinline]] int note(PostRule rule, const ibv_send_wr& wr, uint64_t asked,
                                        uint64_t allowed);
  // All `depth` places are taken. `count` counts the unsignaled ones. It is called only for the
  // first refusal: programs that post until the queue is full do so often, and it may be deep.
  // `waiting`: as in PostRefusal.
  template <class Count>
  [[gnu::cold, gnu::noinline]] int note_full(const ibv_send_wr& wr, uint32_t depth, Count&& count,
                                             uint64_t waiting) {
    const bool again = std::exchange(was_full_, true);
    note(again ? PostRule::kStillFull : PostRule::kFull, wr, again ? 0 : count(), depth);
    refused_.waiting = waiting;
    return refused_.error();
  }
  // Returns it once.
  PostRefusal take() { return std::exchange(refused_, {}); }

 private:
  PostRefusal refused_;
  bool was_full_ = false;
};

// Logs a refusal by ibv_post_send on this queue pair. Nothing for kNone.
void explain(core::Told& told, uint32_t qp_num, const PostRefusal& refused);

class ReceiveQueue;
// Checks ibv_post_recv in this state, with or without a shared receive queue: 0 or EINVAL.
int refuse_post_recv(core::Told& told, uint32_t qp_num, const void* srq);
inline int check_post_recv(core::Told& told, uint32_t qp_num, ibv_qp_state state, const void* srq) {
  if (!srq && state != IBV_QPS_RESET) [[likely]]
    return 0;
  return refuse_post_recv(told, qp_num, srq);
}
// For ibv_post_recv: logs why ReceiveQueue::post() returned `error`.
void explain(core::Told& told, uint32_t qp_num, const ReceiveQueue& queue, const ibv_recv_wr& wr,
             int error);
// The same for ibv_post_srq_recv.
void explain(core::Told& told, const ReceiveQueue& queue, const ibv_recv_wr& wr, int error);

}  // namespace uiw::queue
