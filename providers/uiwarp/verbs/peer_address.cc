// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/peer_address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/log.h"

namespace uiw::verbs {
namespace {

// InfiniBand lets an adapter take up to four times as long as its timeout says, and they do. TCP,
// which repeats after 200 ms at the least and doubles that, needs it: with the usual 14 and 7,
// or 2.1 s, a byte is sent four times.
constexpr core::Nanoseconds kAdaptersTake = 4;

core::Errno refuse(const char* why) {
  core::log(core::LogLevel::kWarn, "ibv_modify_qp to RTR: %s", why);
  return core::Errno{EINVAL};
}

}  // namespace

core::Result<rendezvous::PeerSearchParams> peer_search_params(const device::Device& device,
                                                              uint32_t qp_num,
                                                              const ibv_qp_attr& attr, int mask) {
  constexpr int kBoth = IBV_QP_AV | IBV_QP_DEST_QPN;
  if ((mask & kBoth) != kBoth)
    return refuse("address vector and destination queue pair number go together");
  if (!attr.ah_attr.is_global)
    return refuse(
        "the peer has no GID, and a LID means nothing on TCP: choose a GID index (ibv_rc_pingpong: "
        "-g 0)");
  const ibv_global_route& route = attr.ah_attr.grh;
  const std::vector<in6_addr> gids = device::state_of(device).gids;
  if (route.sgid_index >= gids.size() || IN6_IS_ADDR_UNSPECIFIED(&gids[route.sgid_index]))
    return refuse("the device has no GID of that index");
  if (attr.dest_qp_num >> 24) return refuse("a queue pair number has 24 bits");
  rendezvous::PeerSearchParams params;
  params.own = {gids[route.sgid_index], qp_num};
  static_assert(sizeof params.peer.gid == sizeof route.dgid);
  std::memcpy(&params.peer.gid, &route.dgid, sizeof route.dgid);
  params.peer.qp_num = attr.dest_qp_num;
  params.ifindex = device.ifindex;
  params.ird = mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr.max_dest_rd_atomic : 1;
  params.rq_psn = mask & IBV_QP_RQ_PSN ? attr.rq_psn : 0;
  const in6_addr& gid = params.peer.gid;
  if (IN6_IS_ADDR_UNSPECIFIED(&gid) || IN6_IS_ADDR_MULTICAST(&gid))
    return refuse("the peer's GID is not the address of a host: both ends have to be uiwarp");
  const in6_addr& own = params.own.gid;
  if (IN6_IS_ADDR_V4MAPPED(&own) != IN6_IS_ADDR_V4MAPPED(&gid))
    return refuse(
        "one of the two GIDs is an IPv4 address, the other an IPv6 one: choose GID indices of one "
        "kind at both ends");
  if (rendezvous::is_loopback(own) &&
      !device::is_local_address(rendezvous::address_of(gid, 0, device.ifindex)))
    return refuse(
        "the peer is on another host, which a loopback device does not reach: choose another "
        "device (ibv_rc_pingpong: -d)");
  sockaddr_storage source;
  if (const int error = device::route_source(
          rendezvous::address_of(gid, rendezvous::port_of(attr.dest_qp_num), device.ifindex),
          source)) {
    core::log(core::LogLevel::kWarn,
              "ibv_modify_qp to RTR: no route to the address that the peer's GID says: %s",
              strerrordesc_np(error));
    return core::Errno{error};
  }
  return params;
}

core::Nanoseconds peer_time_limit(const ibv_qp_attr& attr) {
  if (attr.timeout == 0) return 0;
  const core::Nanoseconds once = core::Nanoseconds{4096} << std::min<int>(attr.timeout, 31);
  return std::max<core::Nanoseconds>(kAdaptersTake * once * (attr.retry_cnt + 1), core::kSecond);
}

void remember(ibv_qp_attr& kept, const ibv_qp_attr& attr, int mask) {
  if (mask & IBV_QP_AV) kept.ah_attr = attr.ah_attr;
  if (mask & IBV_QP_DEST_QPN) kept.dest_qp_num = attr.dest_qp_num;
  if (mask & IBV_QP_PATH_MTU) kept.path_mtu = attr.path_mtu;
  if (mask & IBV_QP_RQ_PSN) kept.rq_psn = attr.rq_psn;
  if (mask & IBV_QP_SQ_PSN) kept.sq_psn = attr.sq_psn;
  if (mask & IBV_QP_TIMEOUT) kept.timeout = attr.timeout;
  if (mask & IBV_QP_RETRY_CNT) kept.retry_cnt = attr.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) kept.rnr_retry = attr.rnr_retry;
  if (mask & IBV_QP_MIN_RNR_TIMER) kept.min_rnr_timer = attr.min_rnr_timer;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) kept.max_rd_atomic = attr.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) kept.max_dest_rd_atomic = attr.max_dest_rd_atomic;
}

void recall(ibv_qp_attr& answer, const ibv_qp_attr& kept) {
  answer.ah_attr = kept.ah_attr;
  answer.dest_qp_num = kept.dest_qp_num;
  if (kept.path_mtu) answer.path_mtu = kept.path_mtu;
  answer.rq_psn = kept.rq_psn;
  answer.sq_psn = kept.sq_psn;
  answer.timeout = kept.timeout;
  answer.retry_cnt = kept.retry_cnt;
  answer.rnr_retry = kept.rnr_retry;
  answer.min_rnr_timer = kept.min_rnr_timer;
  answer.max_rd_atomic = kept.max_rd_atomic;
  answer.max_dest_rd_atomic = kept.max_dest_rd_atomic;
}

}  // namespace uiw::verbs
