// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where a call came from. Taken at each post and remembered with each request, so it is only the
// number of a backtrace that is kept once for all of them (check/stack_depot.h).
#pragma once

#include <cstdint>

#include "check/backtrace.h"

namespace uiw::check {

class Stack {
 public:
  constexpr Stack() = default;  // of no call
  // Keeps it.
  explicit Stack(const Backtrace& calls);
  // Of one that could not be kept, since there are too many.
  static constexpr Stack lost() { return Stack(kLost); }
  bool is_lost() const { return number_ == kLost; }

  // Without frames of no call, and of a lost one.
  const Backtrace& calls() const;
  // Lost ones are the same.
  bool operator==(const Stack&) const = default;

 private:
  static constexpr uint32_t kLost = ~uint32_t{0};
  constexpr explicit Stack(uint32_t number) : number_(number) {}

  uint32_t number_ = 0;
};
static_assert(sizeof(Stack) == 4);

// The stack of whoever called the function that calls this. Thread: any.
void capture(Stack& stack);

// Whether librdmacm made this verbs call for itself or for the program. Thread: any.
bool is_by_librdmacm(const Stack& stack);

}  // namespace uiw::check
