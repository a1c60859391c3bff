// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/place.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "trace/record.h"

namespace uiw::trace {

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
  const auto pid = static_cast<pid_t>(header.pid);
  return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM) ? Place::kInUse : Place::kFree;
}

}  // namespace uiw::trace
