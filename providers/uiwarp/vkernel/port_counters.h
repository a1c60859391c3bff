// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// /sys/class/infiniband/DEVICE/ports/1/{counters,hw_counters}/*: what the programs of this user
// have sent and received. A descriptor of one says what it was when it was opened.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "counters/snapshot.h"

namespace uiw::vkernel {

struct PortCounter {
  const char* path;  // below the port's folder
  uint64_t counters::Row::*value;
  uint64_t unit;  // of the file, in that of `value`
};
std::span<const PortCounter> port_counters();

// What it says of a device, of what was counted. Of one with no row: 0.
uint64_t value_of(const PortCounter& counter, std::span<const counters::Row> counted,
                  std::string_view device);

// open() of a normalised path: a descriptor, -errno, or kNoCounter, which also stands for one that
// is to be written to.
inline constexpr int kNoCounter = -4096;
int open_port_counter(std::string_view normalised, int flags);

}  // namespace uiw::vkernel
