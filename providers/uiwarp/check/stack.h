// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where a call came from. Taken at each post, so that is only addresses; what they mean is looked
// up when a finding is shown (check/symbols.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "check/python.h"

namespace uiw::check {

struct Stack {
  static constexpr size_t kMost = 12;
  std::array<uintptr_t, kMost> frames;  // return addresses, the innermost first
  uint32_t count = 0;
  const PythonStack* python = nullptr;  // whose interpreter these are the calls of

  std::span<const uintptr_t> addresses() const { return {frames.data(), count}; }
  bool operator==(const Stack& other) const;
};

// The stack of whoever called the function that calls this. Thread: any.
void capture(Stack& stack);

// Whether librdmacm made this verbs call for itself or for the program. Thread: any.
bool is_by_librdmacm(const Stack& stack);

}  // namespace uiw::check
