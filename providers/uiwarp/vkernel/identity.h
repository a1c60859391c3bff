// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What files, fstat() and netlink say alike of our devices: whoever asks two of them compares.
#pragma once

#include <cstdint>

namespace uiw::vkernel {

inline constexpr char kFirmwareVersion[] = "0.1.0";

struct CharacterDevice {
  uint32_t major;
  uint32_t minor;
  uint32_t abi;  // of the commands that are written to it
};

// The command descriptor is one of /dev/null (uverbs.h), of which fix_stat() says the number that
// the device has here: libibverbs finds the device of a descriptor by it. No real device has major
// 0.
constexpr CharacterDevice uverbs_device(uint32_t minor) {
  return {0, minor, 1};
}
// The number that fix_stat() gives the pipe. librdmacm wants a character device, whichever.
inline constexpr CharacterDevice kRdmaCmDevice{10, 58, 4};

}  // namespace uiw::vkernel
