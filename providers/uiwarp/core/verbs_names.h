// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The names of the values of verbs' enums in the manual, without their prefixes. Only for valid
// values; pass what a program wrote through value_of() first.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace uiw::core {

// "RDMA_WRITE" and so on, by value, for the work requests that are supported here.
std::span<const char* const> opcode_names();
inline const char* name_of(ibv_wr_opcode opcode) {
  return opcode_names()[opcode];
}
// "STATE", "CUR_STATE" and so on, by the bit of enum ibv_qp_attr_mask, up to DEST_QPN.
std::span<const char* const> attribute_names();
// "RESET" and so on.
const char* name_of(ibv_qp_state state);
// "SUCCESS" and so on, by value of ibv_wc_status, for the statuses that exist here.
std::span<const char* const> status_names();
inline const char* name_of(ibv_wc_status status) {
  return status_names()[status];
}
// "RC", "UC" or "UD", for an ibv_qp_type; null for others.
const char* name_of_type(uint32_t qp_type);

// The number that an application wrote, which may be no opcode and must not be read as an enum.
inline uint32_t value_of(const ibv_wr_opcode& opcode) {
  uint32_t value;
  static_assert(sizeof value == sizeof opcode);
  std::memcpy(&value, &opcode, sizeof value);
  return value;
}

}  // namespace uiw::core
