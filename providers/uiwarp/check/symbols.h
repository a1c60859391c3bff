// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What addresses of this process mean, by elfutils' libdwfl: looked up in the files that are
// mapped, and in separate debug information of this host. Nothing is fetched from elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "check/backtrace.h"

namespace uiw::check {

struct Frame {
  std::string function;  // empty: no symbol
  std::string file;      // empty: no debug information
  int line = 0;
  std::string module;   // the mapped file; empty: none, made at run time
  uint64_t offset = 0;  // in it
};

bool is_of_libc(const Frame& frame);

// The frames of the program: those of uiwarp and libibverbs at its inner end are left out, unless
// there are no others. Thread: one at a time.
class Symbols {
 public:
  Symbols();
  ~Symbols();
  std::vector<Frame> frames_of(const Backtrace& calls);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace uiw::check
