// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program says of its queue pair's peer in ibv_modify_qp, as programs do that exchange queue
// pair numbers and GIDs by themselves.
#pragma once

#include <infiniband/verbs.h>

#include "core/clock.h"
#include "core/explain.h"
#include "core/result.h"
#include "core/spinlock.h"
#include "device/device.h"
#include "device/face.h"
#include "rendezvous/peer_search.h"

namespace uiw::verbs {

// INIT to RTR with IBV_QP_AV and IBV_QP_DEST_QPN: the peer to connect to. What is wrong is logged.
// EINVAL: one of the two is missing, or a number of more than 24 bits; and as resolve().
core::Result<rendezvous::PeerSearchParams> peer_search_params(const device::Device& device,
                                                              const device::Face& face,
                                                              uint32_t qp_num,
                                                              const ibv_qp_attr& attr, int mask,
                                                              core::Told& told);

// How long InfiniBand would retry to a peer that does not answer: up to four times 4.096 us *
// 2^timeout, retry_cnt more times; and at least a second, as no adapter answers before a program
// does. 0: for ever.
core::Nanoseconds peer_time_limit(const ibv_qp_attr& attr);

// The same where nothing is retried and nobody is told (unreliable service): what is posted is
// dropped then. Enough for a SYN that was lost twice, which TCP repeats after one and three
// seconds.
inline constexpr core::Nanoseconds kPatienceWithoutRetries = 4 * core::kSecond;

// The peer, and attributes that have no meaning on TCP, for ibv_query_qp. Thread: any.
class KeptAttributes {
 public:
  // Takes what `mask` sets, with the move to RESET nothing else; what is kept then.
  ibv_qp_attr take(const ibv_qp_attr& attr, int mask);
  // Puts it into an answer, if the queue pair is connected by number.
  void recall(ibv_qp_attr& answer) const;

 private:
  mutable core::Spinlock lock_;
  ibv_qp_attr kept_{};  // under lock_
};

}  // namespace uiw::verbs
