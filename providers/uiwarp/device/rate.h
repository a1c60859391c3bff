// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a port says of its speed. A virtual link has none that is known; programs compare them.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace uiw::device {

// As ibv_port_attr has it, and ports/1/rate in sysfs.
struct Rate {
  uint8_t width, speed;
  const char* text;
};

// The loopback device is the slower one by far: UCX sends large messages by all devices that are
// about as fast as each other, also to another host, where the loopback device of that one is
// another. An adapter's host has no such device. Thread: any.
Rate rate_of(const State& state);

}  // namespace uiw::device
