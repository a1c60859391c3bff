// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What ibv_modify_qp says about the peer, in programs that exchange queue pair numbers and GIDs by
// themselves.
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

// INIT to RTR with IBV_QP_AV and IBV_QP_DEST_QPN: the peer to connect to. Errors are logged.
// EINVAL: one of the two is missing, the number has more than 24 bits; else as resolve().
core::Result<rendezvous::PeerSearchParams> peer_search_params(const device::Device& device,
                                                              const device::Face& face,
                                                              uint32_t qp_num,
                                                              const ibv_qp_attr& attr, int mask,
                                                              core::Told& told);

// How long InfiniBand would retry if the peer does not answer: up to four times 4.096 us *
// 2^timeout, for 1 + retry_cnt tries; at least a second, as here it is the peer's program, not an
// adapter, that has to answer. 0: forever.
core::Nanoseconds peer_time_limit(const ibv_qp_attr& attr);

// The same for unreliable service, which neither retries nor reports: afterwards posted requests
// are dropped. Long enough for a SYN that was lost twice; TCP repeats it after one and three
// seconds.
inline constexpr core::Nanoseconds kPatienceWithoutRetries = 4 * core::kSecond;

// Keeps the peer, and attributes without a meaning on TCP, for ibv_query_qp. Thread: any.
class KeptAttributes {
 public:
  // Stores the attributes in `mask`; a move to RESET clears the others. Returns what is stored.
  ibv_qp_attr take(const ibv_qp_attr& attr, int mask);
  // Copies them into an answer, if the queue pair is connected by number.
  void recall(ibv_qp_attr& answer) const;

 private:
  mutable core::Spinlock lock_;
  ibv_qp_attr kept_{};  // under lock_
};

}  // namespace uiw::verbs
