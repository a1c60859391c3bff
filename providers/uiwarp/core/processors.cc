// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/processors.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <charconv>

#include "core/raw_sys.h"

namespace uiw::core {

namespace {

// Of the first thread: others of ours go where it pleases them (engine/steering.h).
int processors() {
  unsigned long words[8192 / (8 * sizeof(unsigned long))] = {};
  // The raw call: glibc's cpu_set_t ends at 1024 CPUs.
  if (syscall(SYS_sched_getaffinity, getpid(), sizeof words, words) < 0) return 0;
  int count = 0;
  for (const unsigned long word : words) count += std::popcount(word);
  return count;
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

bool processors_are_short() {
  const int count = processors();
  const int fd = sys::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[64];
  const long size = sys::read(fd, text, sizeof text);
  sys::close(fd);
  return count > 0 && size > 0 && more_run_than({text, static_cast<size_t>(size)}, count);
}

}  // namespace uiw::core
