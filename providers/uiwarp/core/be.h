// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Big-endian loads and stores: all code that handles network byte order uses these. They work on
// unaligned memory and compile to one movbe/bswap.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace uiw::core {

static_assert(std::endian::native == std::endian::little, "only little-endian hosts are supported");

inline uint16_t load_be16(const void* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap16(v);
}
inline uint32_t load_be32(const void* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap32(v);
}
inline uint64_t load_be64(const void* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap64(v);
}
inline void store_be16(void* p, uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be32(void* p, uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be64(void* p, uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, sizeof v);
}

}  // namespace uiw::core
