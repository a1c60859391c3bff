// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/processors.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <span>

#include "core/cpu_mask.h"
#include "core/raw_sys.h"

namespace uiw::core {
namespace {

// The beginning of a file, as much of it as there is room for. Empty when it cannot be read.
std::string_view read_line(const char* path, std::span<char> room) {
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const long size = sys::read(fd, room.data(), room.size());
  sys::close(fd);
  return {room.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

}  // namespace

bool more_run_than(std::string_view loadavg, int processors) {
  for (int field = 0; field < 3; ++field) {
    const size_t space = loadavg.find(' ');
    if (space == loadavg.npos) return false;
    loadavg.remove_prefix(space + 1);
  }
  int running = 0;
  const auto [end, error] =
      std::from_chars(loadavg.data(), loadavg.data() + loadavg.size(), running);
  const bool read = error == std::errc() && end != loadavg.data() + loadavg.size() && *end == '/';
  return read && running > processors;
}

// Those of the first thread: others of ours go where it pleases them (engine/steering.h).
int processors() {
  CpuMask ours;
  return ours.read(getpid()) ? ours.count() : 0;
}

bool processors_are_short() {
  const int ours = processors();
  if (ours == 0) return false;
  char text[64];
  return more_run_than(read_line("/proc/loadavg", text), ours);
}

std::optional<RunTime> parse_run_time(std::string_view schedstat) {
  RunTime time;
  const char* const last = schedstat.data() + schedstat.size();
  const auto ran = std::from_chars(schedstat.data(), last, time.ran);
  if (ran.ec != std::errc() || ran.ptr == last || *ran.ptr != ' ') return std::nullopt;
  const auto waited = std::from_chars(ran.ptr + 1, last, time.waited);
  if (waited.ec != std::errc() || waited.ptr == last || *waited.ptr != ' ') return std::nullopt;
  return time;
}

std::optional<RunTime> run_time() {
  char text[64];
  return parse_run_time(read_line("/proc/thread-self/schedstat", text));
}

}  // namespace uiw::core
