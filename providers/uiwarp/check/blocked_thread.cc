// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/blocked_thread.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "core/raw_sys.h"
#include "core/read_file.h"

namespace uiw::check {
namespace {

namespace sys = core::sys;

std::string_view next_word(std::string_view& rest) {
  const size_t begin = rest.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return rest = {};
  rest.remove_prefix(begin);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t\n"));
  rest.remove_prefix(word.size());
  return word;
}

template <class Number>
bool parse(std::string_view word, int base, Number& number) {
  if (base == 16 && word.starts_with("0x")) word.remove_prefix(2);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return error == std::errc() && end == word.data() + word.size();
}

Wait in_poll(uint64_t fds, uint64_t count, int fd) {
  constexpr size_t kMost = 64;
  pollfd all[kMost];
  if (count == 0 || count > kMost || !read_own_memory(fds, all, count * sizeof all[0]))
    return Wait::kOther;
  size_t ours = 0;
  for (size_t i = 0; i < count; ++i)
    if (all[i].fd == fd && (all[i].events & POLLIN)) ++ours;
  if (ours == 0) return Wait::kOther;
  return ours == count ? Wait::kSolely : Wait::kAmong;
}

// /proc/self/fdinfo has a line for each descriptor: "tfd:        5 events:       19 data: ...".
Wait in_epoll(int epoll_fd, int fd) {
  char path[64], text[4096];
  std::snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", epoll_fd);
  std::string_view rest = core::beginning_of(path, text);
  if (rest.size() == sizeof text) return Wait::kOther;  // too many to say
  size_t all = 0, ours = 0;
  for (std::string_view word; !(word = next_word(rest)).empty();) {
    int watched;
    if (word != "tfd:" || !parse(next_word(rest), 10, watched)) continue;
    ++all;
    ours += watched == fd;
  }
  if (ours == 0) return Wait::kOther;
  return ours == all ? Wait::kSolely : Wait::kAmong;
}

}  // namespace

bool read_own_memory(uint64_t address, void* to, size_t size) {
  const iovec here{to, size}, there{reinterpret_cast<void*>(address), size};
  return syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) == static_cast<long>(size);
}

std::optional<SystemCall> parse_system_call(std::string_view line) {
  SystemCall call;
  if (!parse(next_word(line), 10, call.number) || call.number < 0) return std::nullopt;
  for (uint64_t& argument : call.arguments)
    if (!parse(next_word(line), 16, argument)) return std::nullopt;
  if (!parse(next_word(line), 16, call.stack_pointer)) return std::nullopt;
  return call;
}

std::optional<SystemCall> blocked_in(int tid) {
  char path[64], line[256];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
  return parse_system_call(core::beginning_of(path, line));
}

Wait waits_for(const SystemCall& call, int fd) {
  const auto& a = call.arguments;
  switch (call.number) {
    case SYS_read:
      return static_cast<int>(a[0]) == fd ? Wait::kSolely : Wait::kOther;
#ifdef SYS_poll
    case SYS_poll:
      return static_cast<int>(a[2]) < 0 ? in_poll(a[0], a[1], fd) : Wait::kOther;
#endif
    case SYS_ppoll:
      return a[2] == 0 ? in_poll(a[0], a[1], fd) : Wait::kOther;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
      return static_cast<int>(a[3]) < 0 ? in_epoll(static_cast<int>(a[0]), fd) : Wait::kOther;
    default:
      return Wait::kOther;
  }
}

bool waits_by_futex_in(const SystemCall& call, uint64_t address, uint64_t size) {
  const auto& a = call.arguments;
  if (call.number != SYS_futex || a[3] != 0) return false;
  const int operation = static_cast<int>(a[1]) & FUTEX_CMD_MASK;
  if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) return false;
  return a[0] >= address && a[0] < address + size;
}

}  // namespace uiw::check
