// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// By libunwind's unw_backtrace(), which remembers the frame layouts that a thread has seen: 0.2 us,
// where libgcc's _Unwind_Backtrace() and unw_step() take 10.
#define UNW_LOCAL_ONLY
#include "check/stack.h"

#include <dlfcn.h>
#include <libunwind.h>

#include <atomic>
#include <string_view>

#include "check/fork_gate.h"
#include "check/stack_depot.h"
#include "check/unloads.h"
#include "core/no_cancellation.h"

namespace uiw::check {
namespace {

constexpr size_t kOwn = 2;  // capture(), and the function that calls it
using Frames = std::array<void*, Backtrace::kMost + kOwn>;

constinit StackDepot depot;

// What a thread remembers is freed under a lock when it ends, which ThreadSanitizer has by then
// forgotten the thread for, and crashes.
const bool remembers = !dlsym(RTLD_DEFAULT, "__tsan_init");

// Whether what this thread remembers is of code that is still there. It begins with the first
// stack, and cannot be forgotten: where a library was unloaded since, another one may have been
// loaded to its addresses, with frames of other sizes. What unw_step() remembers can be.
bool may_remember() {
  constexpr uint64_t kNever = ~uint64_t{0};
  static thread_local uint64_t at_first = kNever;
  static constinit std::atomic<uint64_t> flushed{0};
  const uint64_t now = unloads();
  if (at_first == kNever) at_first = now;
  if (remembers && at_first == now) return true;
  // Whoever sees the number finds it flushed.
  if (flushed.load(std::memory_order_acquire) != now) {
    unw_flush_cache(unw_local_addr_space, 0, 0);
    flushed.store(now, std::memory_order_release);
  }
  return false;
}

// Begins in the function that calls it.
__attribute__((always_inline)) inline size_t step(Frames& frames) {
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  size_t count = 0;
  do {
    unw_word_t address = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &address);
    frames[count++] = reinterpret_cast<void*>(address);
  } while (count < frames.size() && unw_step(&cursor) > 0);
  return count;
}

}  // namespace

Stack::Stack(const Backtrace& calls) {
  if (calls == Backtrace{}) return;
  const uint32_t number = depot.number_of(calls);
  number_ = number ? number : kLost;
}

const Backtrace& Stack::calls() const {
  static constexpr Backtrace kNone{};
  return number_ == 0 || is_lost() ? kNone : depot.at(number_);
}

__attribute__((noinline)) void capture(Stack& stack) {
  Frames frames;
  const core::NoCancellation whole;
  fork_gate.enter();
  const size_t count =
      may_remember()
          ? static_cast<size_t>(unw_backtrace(frames.data(), static_cast<int>(frames.size())))
          : step(frames);
  fork_gate.leave();
  Backtrace calls;
  calls.count = static_cast<uint32_t>(count > kOwn ? count - kOwn : 0);
  for (uint32_t i = 0; i < calls.count; ++i)
    calls.frames[i] = reinterpret_cast<uintptr_t>(frames[kOwn + i]);
  calls.python = python_stack();
  stack = Stack(calls);
}

bool is_by_librdmacm(const Stack& stack) {
  for (const uintptr_t address : stack.calls().addresses()) {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(address - 1), &info)) return false;
    const std::string_view path = info.dli_fname;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("libuiwarp") || name.starts_with("libibverbs.so")) continue;
    return name.starts_with("librdmacm.so");
  }
  return false;
}

}  // namespace uiw::check
