// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Views of bytes from or for the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uiw::core {

using Bytes = std::span<const uint8_t>;
using MutableBytes = std::span<uint8_t>;

}  // namespace uiw::core
