// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A file that the user has named.
#pragma once

#include <cerrno>
#include <cstdio>
#include <string>

namespace uiw::core {

// Appends all of it to `text`. 0 or a positive errno. Thread: any.
inline int read_file(const std::string& path, std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (!file) return errno;
  char part[4096];
  for (size_t size; (size = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, size);
  const int error = std::ferror(file) ? EIO : 0;
  std::fclose(file);
  return error;
}

}  // namespace uiw::core
