// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the manual calls the values of verbs' enums, without their prefixes. Of values that the enum
// has; what a program wrote is looked at by value_of() first.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace uiw::core {

// "RDMA_WRITE" and so on, by value, as far as there are such work requests here.
std::span<const char* const> opcode_names();
inline const char* name_of(ibv_wr_opcode opcode) {
  return opcode_names()[opcode];
}
// "STATE", "CUR_STATE" and so on, by the bit of enum ibv_qp_attr_mask, up to DEST_QPN.
std::span<const char* const> attribute_names();
// "RESET" and so on.
const char* name_of(ibv_qp_state state);
// "SUCCESS" and so on, by value of ibv_wc_status, as far as there are such statuses here.
std::span<const char* const> status_names();
inline const char* name_of(ibv_wc_status status) {
  return status_names()[status];
}
// "RC", "UC" or "UD", of an ibv_qp_type. Null: none of these.
const char* name_of_type(uint32_t qp_type);

// Of what an application wrote, which may be no opcode at all and must not be looked at as one.
inline uint32_t value_of(const ibv_wr_opcode& opcode) {
  uint32_t value;
  static_assert(sizeof value == sizeof opcode);
  std::memcpy(&value, &opcode, sizeof value);
  return value;
}

}  // namespace uiw::core
