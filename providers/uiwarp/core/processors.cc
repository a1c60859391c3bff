// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/processors.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

#include "core/cpu_mask.h"
#include "core/raw_sys.h"

namespace uiw::core {

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
  const int fd = sys::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[64];
  const long size = sys::read(fd, text, sizeof text);
  sys::close(fd);
  return size > 0 && more_run_than({text, static_cast<size_t>(size)}, ours);
}

}  // namespace uiw::core
