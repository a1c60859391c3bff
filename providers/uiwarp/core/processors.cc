// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/processors.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <span>

#include "core/cpu_mask.h"
#include "core/read_file.h"

namespace uiw::core {
namespace {

// Removes a number and the character behind it from the beginning of `text`. False when `text` does
// not begin with them.
template <class Number>
bool take_number(std::string_view& text, Number& number, char behind) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end == last || *end != behind) return false;
  text.remove_prefix(static_cast<size_t>(end + 1 - text.data()));
  return true;
}

}  // namespace

bool more_run_than(std::string_view loadavg, int processors) {
  for (int field = 0; field < 3; ++field) {
    const size_t space = loadavg.find(' ');
    if (space == loadavg.npos) return false;
    loadavg.remove_prefix(space + 1);
  }
  int running = 0;
  return take_number(loadavg, running, '/') && running > processors;
}

// Those of the main thread: engines change their own (engine/steering.h).
int processors() {
  CpuMask ours;
  return ours.read(getpid()) ? ours.count() : 0;
}

bool processors_are_short() {
  const int ours = processors();
  if (ours == 0) return false;
  char text[64];
  return more_run_than(beginning_of("/proc/loadavg", text), ours);
}

std::optional<RunTime> parse_run_time(std::string_view schedstat) {
  RunTime time;
  const bool read =
      take_number(schedstat, time.ran, ' ') && take_number(schedstat, time.waited, ' ');
  return read ? std::optional(time) : std::nullopt;
}

std::optional<RunTime> run_time() {
  char text[64];
  return parse_run_time(beginning_of("/proc/thread-self/schedstat", text));
}

}  // namespace uiw::core
