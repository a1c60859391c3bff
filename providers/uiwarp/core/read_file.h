// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Reads whole files, or their beginning.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/raw_sys.h"

namespace uiw::core {

inline constexpr size_t kLargestFile = 16u << 20;  // bytes; more than any list of rules has

// Appends the contents of a file that the user has named to `text`. Returns "" or the problem: it
// cannot be read, has more than kLargestFile bytes, or is no regular file, such as a FIFO that may
// never have a writer. Thread: any.
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

// Reads the beginning of a file, such as one below /proc, as far as there is `room`. Empty when it
// cannot be read. Thread: any.
inline std::string_view beginning_of(const char* path, std::span<char> room) {
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  size_t have = 0;
  for (long got;
       have < room.size() && (got = sys::read(fd, room.data() + have, room.size() - have)) > 0;)
    have += static_cast<size_t>(got);
  sys::close(fd);
  return {room.data(), have};
}

// Reads `bytes` of an open file from `offset` on, as far as it has them; returns how many. If
// another process writes the file through a mapping, later calls read later contents. Thread: any.
inline size_t read_at(int fd, std::span<uint8_t> bytes, uint64_t offset) {
  __sync_synchronize();  // a fence that the thread sanitizer accepts
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more =
        pread(fd, bytes.data() + got, bytes.size() - got, static_cast<off_t>(offset + got));
    if (more <= 0) break;
    got += static_cast<size_t>(more);
  }
  return got;
}

}  // namespace uiw::core
