// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a thread of this process is blocked in, as the kernel says it: without a hook on read(),
// poll() or a lock, which those would pay who are not checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace uiw::check {

struct SystemCall {
  long number = 0;
  std::array<uint64_t, 6> arguments{};
  uint64_t stack_pointer = 0;
  bool operator==(const SystemCall&) const = default;
};

// A line of /proc/PID/task/TID/syscall; none for a thread that runs, or is blocked outside of a
// call. Pure.
std::optional<SystemCall> parse_system_call(std::string_view line);

// What that thread is blocked in now; none also when the kernel does not say. Thread: any.
std::optional<SystemCall> blocked_in(int tid);

enum class Wait : uint8_t {
  kOther,   // for something else, or with a time-out
  kAmong,   // without a time-out, for the descriptor to be readable, or for others
  kSolely,  // without a time-out, for the descriptor only
};
// How a thread that is blocked in `call` waits for `fd`: by read(), poll() or epoll; others are
// kOther. Thread: any.
Wait waits_for(const SystemCall& call, int fd);

// Whether it waits for another thread by a futex in those bytes, without a time-out.
bool waits_by_futex_in(const SystemCall& call, uint64_t address, uint64_t size);

// Reads this process's own memory, which may be unmapped meanwhile. False: not all of it is there.
bool read_own_memory(uint64_t address, void* to, size_t size);

}  // namespace uiw::check
