// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/moves.h"

#include "check/request.h"
#include "check/text.h"
#include "core/verbs_names.h"

namespace uiw::check {
namespace {

// InfiniBand Architecture Specification volume 1, 11.2.5.2, as the kernel's verbs check it for
// every InfiniBand and RoCE adapter.
constexpr int kForInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kForRtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kForRts =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

// Numbers 0 and 1 are no program's: by 1 rdma_cm names the peer whose number it does not know.
constexpr uint32_t kFirstNumber = 2;

bool names_peer(const ibv_qp_attr& attr, int mask) {
  return (mask & IBV_QP_DEST_QPN) && attr.dest_qp_num >= kFirstNumber;
}

}  // namespace

std::string attributes_of(int mask) {
  std::string list;
  const std::span<const char* const> names = core::attribute_names();
  for (size_t bit = 0; bit < names.size(); ++bit)
    if (mask & (1 << bit)) list += text("%sIBV_QP_%s", list.empty() ? "" : ", ", names[bit]);
  return list;
}

void Moves::add_missing(std::vector<MoveFault>& found, ibv_qp_state from, ibv_qp_state to,
                        int missing, const Stack& called) const {
  if (missing == 0) return;
  found.push_back({{Kind::kAttributesMissing,
                    text("ibv_modify_qp from %s to %s without %s in attr_mask", core::name_of(from),
                         core::name_of(to), attributes_of(missing).c_str())},
                   called});
}

std::optional<Fault> Moves::no_depth_for(const ibv_send_wr& wr) const {
  if (role_of(wr) != Role::kSink || peer_ != Peer::kByNumber || max_rd_atomic_ != 0) return {};
  return Fault{Kind::kReadDepth,
               text("IBV_WR_%s is posted, but ibv_modify_qp to RTS gave the queue pair "
                    "max_rd_atomic 0: no RDMA Reads and atomics of its own; max_dest_rd_atomic, "
                    "for those of the peer, is %u",
                    core::name_of(wr.opcode), max_dest_rd_atomic_)};
}

void Moves::receive_taken(const Stack& posted) {
  if (state_ == IBV_QPS_RESET && !early_receive_) early_receive_ = posted;
}

std::vector<MoveFault> Moves::made(const ibv_qp_attr& attr, int mask, const Stack& called) {
  std::vector<MoveFault> found;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) max_rd_atomic_ = attr.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) max_dest_rd_atomic_ = attr.max_dest_rd_atomic;
  if (!(mask & IBV_QP_STATE)) return found;
  const ibv_qp_state from = state_;
  state_ = attr.qp_state;
  switch (attr.qp_state) {
    case IBV_QPS_RESET:
      *this = {};
      break;
    case IBV_QPS_INIT:
      if (from != IBV_QPS_RESET) break;
      missing_at_init_ = kForInit & ~mask;
      init_called_ = called;
      break;
    case IBV_QPS_RTR:
      if (!names_peer(attr, mask)) break;
      peer_ = Peer::kByNumber;
      if (early_receive_)
        found.push_back({{Kind::kWrongState,
                          "ibv_post_recv before the queue pair was moved from RESET to INIT: "
                          "adapters refuse it with EINVAL"},
                         *early_receive_});
      early_receive_.reset();
      if (from == IBV_QPS_RESET)
        found.push_back({{Kind::kAttributesMissing,
                          "ibv_modify_qp from RESET to RTR: the queue pair was never moved to "
                          "INIT"},
                         called});
      else
        add_missing(found, IBV_QPS_RESET, IBV_QPS_INIT, missing_at_init_, init_called_);
      add_missing(found, IBV_QPS_INIT, IBV_QPS_RTR, kForRtr & ~mask, called);
      break;
    case IBV_QPS_RTS:
      if (peer_ == Peer::kByNumber && from == IBV_QPS_RTR)
        add_missing(found, from, IBV_QPS_RTS, kForRts & ~mask, called);
      break;
    default:
      break;
  }
  return found;
}

}  // namespace uiw::check
