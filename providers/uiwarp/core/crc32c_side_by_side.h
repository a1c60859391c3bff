// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstddef>
#include <cstdint>

namespace uiw::core {

// With fewer bytes ISA-L is as fast.
inline constexpr size_t kLeastSideBySide = 3072;

// The running value after all but the last bytes; `data` and `size` then describe that rest, of
// less than kLeastSideBySide bytes. Requires crc32c_fold::supported(). Thread: any.
uint32_t crc32c_side_by_side(uint32_t running, const uint8_t*& data, size_t& size);

}  // namespace uiw::core
