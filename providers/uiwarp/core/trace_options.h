// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The value of UIWARP_TRACE: where work requests are recorded, how many, and what else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace uiw::core {

struct TraceOptions {
  static constexpr uint64_t kLeastSize = 64 << 10, kMostSize = 1 << 30;

  std::string_view file;     // empty: off. %p in it stands for the process id
  uint64_t size = 64 << 20;  // size=: bytes; new records replace the oldest ones
  bool fpdus = false;        // fpdus: record each FPDU that is sent or received, too
};

// Parses "off" or "FILE[,size=N][,fpdus]", N with K, M or G behind it for KiB, MiB, GiB. The views
// of `out` are into `text`. On failure returns false; `out` is undefined then, and `problem` names
// the word and what is allowed. Thread: any.
bool parse_trace_options(std::string_view text, TraceOptions& out, std::string* problem = nullptr);

}  // namespace uiw::core
