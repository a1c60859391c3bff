// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/peer_address.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>

#include "verbs/ack_time.h"
#include "verbs/address_vector.h"

namespace uiw::verbs {
namespace {

// InfiniBand lets an adapter take up to four times its timeout, and adapters do. TCP, which
// retransmits after at least 200 ms and doubles that, needs the time: with the usual 14 and 7, or
// 2.1 s, it sends a byte four times.
constexpr core::Nanoseconds kAdaptersTake = 4;

// 0 and 1 are never a program's.
constexpr uint32_t kFirstNumber = 2;

}  // namespace

core::Result<rendezvous::PeerSearchParams> peer_search_params(const device::Device& device,
                                                              const device::Face& face,
                                                              uint32_t qp_num,
                                                              const ibv_qp_attr& attr, int mask,
                                                              core::Told& told) {
  char caller[64];
  std::snprintf(caller, sizeof caller, "ibv_modify_qp to RTR: queue pair 0x%06x", qp_num);
  const auto refuse = [&](const char* why) {
    return core::Errno{core::refuse_because(told, EINVAL, caller, why)};
  };
  constexpr int kBoth = IBV_QP_AV | IBV_QP_DEST_QPN;
  if ((mask & kBoth) != kBoth)
    return refuse("address vector and destination queue pair number go together");
  if (attr.dest_qp_num >> 24) {
    const uint32_t swapped = __builtin_bswap32(attr.dest_qp_num);
    if (swapped >= kFirstNumber && swapped >> 24 == 0)
      return core::Errno{core::refuse(told, EINVAL,
                                      "%s: dest_qp_num is 0x%x, and a queue pair number has 24 "
                                      "bits: with its bytes in the other order it is one, 0x%06x: "
                                      "give it in one byte order at both ends (htonl, ntohl)",
                                      caller, attr.dest_qp_num, swapped)};
    return refuse("a queue pair number has 24 bits");
  }
  auto address = resolve(device, face, attr.ah_attr, Destinations::kHosts, told, caller);
  if (!address) return core::Errno{address.error()};
  rendezvous::PeerSearchParams params;
  params.own = {address->source, qp_num};
  params.peer = {address->destination, attr.dest_qp_num};
  params.ifindex = device.ifindex;
  params.ird = mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr.max_dest_rd_atomic : 1;
  params.rq_psn = mask & IBV_QP_RQ_PSN ? attr.rq_psn : 0;
  return params;
}

core::Nanoseconds peer_time_limit(const ibv_qp_attr& attr) {
  if (attr.timeout == 0) return 0;
  return std::max<core::Nanoseconds>(kAdaptersTake * ack_time(attr.timeout) * (attr.retry_cnt + 1),
                                     core::kSecond);
}

ibv_qp_attr KeptAttributes::take(const ibv_qp_attr& attr, int mask) {
  const std::lock_guard lock(lock_);
  if ((mask & IBV_QP_STATE) && attr.qp_state == IBV_QPS_RESET) kept_ = {};
  if (mask & IBV_QP_AV) kept_.ah_attr = attr.ah_attr;
  if (mask & IBV_QP_DEST_QPN) kept_.dest_qp_num = attr.dest_qp_num;
  if (mask & IBV_QP_PATH_MTU) kept_.path_mtu = attr.path_mtu;
  if (mask & IBV_QP_RQ_PSN) kept_.rq_psn = attr.rq_psn;
  if (mask & IBV_QP_SQ_PSN) kept_.sq_psn = attr.sq_psn;
  if (mask & IBV_QP_TIMEOUT) kept_.timeout = attr.timeout;
  if (mask & IBV_QP_RETRY_CNT) kept_.retry_cnt = attr.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) kept_.rnr_retry = attr.rnr_retry;
  if (mask & IBV_QP_MIN_RNR_TIMER) kept_.min_rnr_timer = attr.min_rnr_timer;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) kept_.max_rd_atomic = attr.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) kept_.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  return kept_;
}

void KeptAttributes::recall(ibv_qp_attr& answer) const {
  const std::lock_guard lock(lock_);
  if (kept_.dest_qp_num == 0) return;
  answer.ah_attr = kept_.ah_attr;
  answer.dest_qp_num = kept_.dest_qp_num;
  if (kept_.path_mtu) answer.path_mtu = kept_.path_mtu;
  answer.rq_psn = kept_.rq_psn;
  answer.sq_psn = kept_.sq_psn;
  answer.timeout = kept_.timeout;
  answer.retry_cnt = kept_.retry_cnt;
  answer.rnr_retry = kept_.rnr_retry;
  answer.min_rnr_timer = kept_.min_rnr_timer;
  answer.max_rd_atomic = kept_.max_rd_atomic;
  answer.max_dest_rd_atomic = kept_.max_dest_rd_atomic;
}

}  // namespace uiw::verbs
