// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/verbs_names.h"

#include <iterator>

namespace uiw::core {
namespace {

constexpr const char* kOpcodes[] = {
    "RDMA_WRITE",         "RDMA_WRITE_WITH_IMM",  "SEND",      "SEND_WITH_IMM", "RDMA_READ",
    "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "LOCAL_INV", "BIND_MW",       "SEND_WITH_INV",
};
static_assert(IBV_WR_RDMA_WRITE == 0 && IBV_WR_SEND_WITH_INV == 9);

constexpr const char* kAttributes[] = {
    "STATE",
    "CUR_STATE",
    "EN_SQD_ASYNC_NOTIFY",
    "ACCESS_FLAGS",
    "PKEY_INDEX",
    "PORT",
    "QKEY",
    "AV",
    "PATH_MTU",
    "TIMEOUT",
    "RETRY_CNT",
    "RNR_RETRY",
    "RQ_PSN",
    "MAX_QP_RD_ATOMIC",
    "ALT_PATH",
    "MIN_RNR_TIMER",
    "SQ_PSN",
    "MAX_DEST_RD_ATOMIC",
    "PATH_MIG_STATE",
    "CAP",
    "DEST_QPN",
};
static_assert(IBV_QP_STATE == 1 && IBV_QP_DEST_QPN == 1 << (std::size(kAttributes) - 1));

}  // namespace

std::span<const char* const> opcode_names() {
  return kOpcodes;
}

std::span<const char* const> attribute_names() {
  return kAttributes;
}

const char* name_of(ibv_qp_state state) {
  constexpr const char* kStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  static_assert(IBV_QPS_RESET == 0 && IBV_QPS_ERR == 6);
  return kStates[state];
}

const char* name_of_type(uint32_t qp_type) {
  switch (qp_type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    default:
      return nullptr;
  }
}

}  // namespace uiw::core
