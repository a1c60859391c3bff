// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/place.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "core/read_file.h"
#include "trace/record.h"

namespace uiw::trace {

namespace {

bool runs(const Header& header) {
  const auto pid = static_cast<pid_t>(header.pid);
  if (pid <= 0 || (kill(pid, 0) != 0 && errno != EPERM)) return false;
  const uint64_t now = started_at(pid);
  return now == 0 || header.started == 0 || now == header.started;
}

}  // namespace

// proc_pid_stat(5): the 22nd field; the second one is a name in parentheses, which may have more.
uint64_t started_at(pid_t pid) {
  constexpr int kBehindName = 20;
  std::string stat;
  core::read_file(("/proc/" + std::to_string(pid) + "/stat").c_str(), stat);
  size_t at = stat.rfind(')');
  for (int field = 0; field < kBehindName && at != stat.npos; ++field) at = stat.find(' ', at + 1);
  return at == stat.npos ? 0 : strtoull(stat.c_str() + at, nullptr, 10);
}

Place look_at(const std::string& path) {
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0) return Place::kFree;
  if (!S_ISREG(file.st_mode)) return Place::kForeign;
  if (file.st_size == 0) return Place::kFree;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return Place::kForeign;
  Header header{};
  const bool whole = read(fd, &header, sizeof header) == sizeof header;
  close(fd);
  if (!whole || header.magic != Header::kMagic) return Place::kForeign;
  return runs(header) ? Place::kInUse : Place::kFree;
}

}  // namespace uiw::trace
