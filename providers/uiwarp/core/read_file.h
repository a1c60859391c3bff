// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A file that the user has named.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/raw_sys.h"

namespace uiw::core {

inline constexpr size_t kLargestFile = 16u << 20;  // bytes: no list of rules has as many

// Appends all of it to `text`. "", or what is wrong: it cannot be read, has more than kLargestFile
// bytes, or is no regular file, as a FIFO that nobody may ever write to. Thread: any.
inline std::string read_file(const std::string& path, std::string& text) {
  const int fd = sys::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return strerrordesc_np(-fd);
  std::string problem;
  struct stat file {};
  if (const int error = sys::fstat(fd, &file))
    problem = strerrordesc_np(-error);
  else if (!S_ISREG(file.st_mode))
    problem = "it is no regular file";
  char part[4096];
  for (size_t all = 0; problem.empty();) {
    const long size = sys::read(fd, part, sizeof part);
    if (size < 0) problem = strerrordesc_np(static_cast<int>(-size));
    if (size <= 0) break;
    all += static_cast<size_t>(size);
    if (all > kLargestFile) problem = "it has more than 16 MiB";
    text.append(part, static_cast<size_t>(size));
  }
  sys::close(fd);
  return problem;
}

}  // namespace uiw::core
