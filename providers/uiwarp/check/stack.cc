// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// By libunwind, which remembers the frame layouts it has seen: 1 us where libgcc's
// _Unwind_Backtrace() takes 9.
#define UNW_LOCAL_ONLY
#include "check/stack.h"

#include <libunwind.h>
#include <pthread.h>

#include <algorithm>

namespace uiw::check {

bool Stack::operator==(const Stack& other) const {
  return std::ranges::equal(addresses(), other.addresses());
}

__attribute__((noinline)) void capture(Stack& stack) {
  constexpr int kOwn = 2;  // this function, and the one that calls it
  std::array<void*, Stack::kMost + kOwn> frames;
  // It may read files, which no post and no poll does that a thread is cancelled in.
  int cancellation;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  const int count = unw_backtrace(frames.data(), static_cast<int>(frames.size()));
  pthread_setcancelstate(cancellation, nullptr);
  stack.count = static_cast<uint32_t>(std::max(count - kOwn, 0));
  for (uint32_t i = 0; i < stack.count; ++i)
    stack.frames[i] = reinterpret_cast<uintptr_t>(frames[kOwn + i]);
}

}  // namespace uiw::check
