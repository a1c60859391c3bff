// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The output of a run, of which only the beginning and the end are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace uiw::tool {

class KeptOutput {
 public:
  // Bytes of each end: some thousand lines, of which the first and the last say most.
  static constexpr size_t kKept = 128 * 1024;

  void add(std::string_view octets);
  // All of it, or both ends and how many bytes were left out between them.
  void print(FILE* to) const;

 private:
  std::string first_, last_;  // last_ is a ring once it has kKept bytes
  size_t oldest_ = 0;         // of the ring
  uint64_t left_out_ = 0;     // bytes
};

}  // namespace uiw::tool
