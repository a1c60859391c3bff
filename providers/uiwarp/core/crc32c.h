// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// CRC32C (Castagnoli) as MPA uses it: RFC 5044 section 4.4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uiw::core {

// Running value: start with crc32c_begin(), feed in stream order, end with crc32c_end().
// The value of crc32c_end() is the usual integer (check value 0xE3069283 for "123456789");
// MPA stores it least significant octet first.
inline constexpr uint32_t crc32c_begin() {
  return 0xffffffffu;
}
uint32_t crc32c_update(uint32_t running, const void* data, size_t size);
// Copies `size` bytes, which must not overlap, and returns crc32c_update() of the copy, even if
// other threads write to `from` meanwhile. Thread: any.
uint32_t crc32c_copy(uint32_t running, void* to, const void* from, size_t size);
// The variant for processors that cannot do both in one pass. Exposed for tests.
uint32_t crc32c_copy_first(uint32_t running, void* to, const void* from, size_t size);
inline constexpr uint32_t crc32c_end(uint32_t running) {
  return running ^ 0xffffffffu;
}

inline uint32_t crc32c(const void* data, size_t size) {
  return crc32c_end(crc32c_update(crc32c_begin(), data, size));
}

}  // namespace uiw::core
