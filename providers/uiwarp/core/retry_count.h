// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>

namespace uiw::core {

// The largest retry count; as rnr_retry it means forever (InfiniBand 9.7.5.2.8, ibv_modify_qp(3)).
inline constexpr uint8_t kMostRetries = 7;

}  // namespace uiw::core
