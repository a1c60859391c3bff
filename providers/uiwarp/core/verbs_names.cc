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

constexpr const char* kStatuses[] = {
    "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
    "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
    "RESP_TIMEOUT_ERR", "GENERAL_ERR",
};
static_assert(IBV_WC_GENERAL_ERR == std::size(kStatuses) - 1 && IBV_WC_RETRY_EXC_ERR == 12);

}  // namespace

std::span<const char* const> opcode_names() {
  return kOpcodes;
}

std::span<const char* const> attribute_names() {
  return kAttributes;
}

std::span<const char* const> status_names() {
  return kStatuses;
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
