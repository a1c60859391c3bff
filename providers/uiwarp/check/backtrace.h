// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The calls that a thread is in, as addresses: what they mean is looked up when a finding is shown
// (check/symbols.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "check/python.h"

namespace uiw::check {

struct Backtrace {
  static constexpr size_t kMost = 12;
  std::array<uintptr_t, kMost> frames;  // return addresses, the innermost first
  uint32_t count = 0;
  const PythonStack* python = nullptr;  // whose interpreter these are the calls of

  std::span<const uintptr_t> addresses() const { return {frames.data(), count}; }
  bool operator==(const Backtrace& other) const {
    return python == other.python && std::ranges::equal(addresses(), other.addresses());
  }
};

}  // namespace uiw::check
