// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// INIT_QP_ATTR: what librdmacm, or a program with a queue pair of its own, is to give to
// ibv_modify_qp() for the connection of an id.
#include <infiniband/verbs.h>

#include <cerrno>

#include "core/qp_number.h"
#include "core/retry_count.h"
#include "vkernel/ucma_file.h"
#include "vkernel/ucma_path.h"

namespace uiw::vkernel {
namespace {

constexpr uint32_t kReads = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Next to nothing: the connection itself takes the queue pair to RTS, so that for RTS there is not
// even a state.
int iwarp_attributes(uint32_t state, ib_uverbs_qp_attr& attr) {
  attr.qp_attr_mask = IBV_QP_PORT;
  attr.port_num = kPort;
  switch (state) {
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      attr.qp_attr_mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
      attr.qp_state = state;
      attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | kReads;
      return 0;
    case IBV_QPS_RTS:
      attr.qp_state = IBV_QPS_RTS;
      return 0;
    default:
      return EINVAL;
  }
}

// The kernel's answers for an adapter of InfiniBand or RoCE. PSNs are 0: TCP has its own.
int infiniband_attributes(uint32_t state, const cm::Route& route, ib_uverbs_qp_attr& attr) {
  const cm::Stage stage = route.stage;
  attr.qp_attr_mask = IBV_QP_STATE;
  attr.qp_state = state;
  switch (state) {
    case IBV_QPS_INIT:
      if (stage == cm::Stage::kOver) return EINVAL;
      attr.qp_attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
      attr.port_num = kPort;
      // Not before it is known that a peer may do anything.
      if (stage == cm::Stage::kAsked || stage == cm::Stage::kAnswered)
        attr.qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | (route.terms.responder_resources > 0 ? kReads : 0);
      return 0;
    case IBV_QPS_RTR:
      if (stage != cm::Stage::kAnswered) return EINVAL;
      attr.qp_attr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
      attr.ah_attr = address_vector(route);
      attr.path_mtu = path_mtu(route);
      attr.dest_qp_num = core::kCmQpNumber;
      attr.max_dest_rd_atomic = route.terms.responder_resources;
      return 0;
    case IBV_QPS_RTS:
      if (stage != cm::Stage::kAnswered) return EINVAL;
      attr.qp_attr_mask |= IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC;
      attr.timeout = route.terms.timeout;
      attr.retry_cnt = route.terms.retry_count;
      attr.rnr_retry = core::kMostRetries;  // as the peer's rnr_retry_count, of which nobody tells
      attr.max_rd_atomic = route.terms.initiator_depth;
      return 0;
    default:
      return EINVAL;
  }
}

// For a queue pair of datagrams, at any stage of its id.
int datagram_attributes(uint32_t state, ib_uverbs_qp_attr& attr) {
  attr.qp_attr_mask = IBV_QP_STATE;
  attr.qp_state = state;
  switch (state) {
    case IBV_QPS_INIT:
      attr.qp_attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
      attr.port_num = kPort;
      attr.qkey = cm::kDatagramQkey;
      return 0;
    case IBV_QPS_RTR:
      return 0;
    case IBV_QPS_RTS:
      attr.qp_attr_mask |= IBV_QP_SQ_PSN;
      return 0;
    default:
      return EINVAL;
  }
}

int attributes(const cm::Rules& rules, uint32_t state, const cm::Route& route,
               ib_uverbs_qp_attr& attr) {
  if (route.service == cm::Service::kDatagrams) return datagram_attributes(state, attr);
  return rules.mover == cm::Mover::kProgram ? infiniband_attributes(state, route, attr)
                                            : iwarp_attributes(state, attr);
}

}  // namespace

int ucma_init_qp_attr(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_init_qp_attr command;
  if (!request.read(command)) return EINVAL;
  ib_uverbs_qp_attr response{};
  if (int error = request.room_for(command.response, response)) return error;
  cm::Route route;
  if (int error = file.manager().query(file.channel(), command.id, route)) return error;
  if (route.node_guid == 0) return EINVAL;  // bound to no device
  if (attributes(file.manager().rules(), command.qp_state, route, response) != 0)
    return file.manager().refuse_attributes(file.channel(), command.id);
  request.respond(command.response, response);
  return 0;
}

}  // namespace uiw::vkernel
