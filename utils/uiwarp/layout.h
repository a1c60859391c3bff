// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where this installation (or build tree) keeps its parts, found from the running binary.
#pragma once

#include <string>
#include <vector>

namespace uiw::tool {

struct Layout {
  std::string binary;                  // absolute path of bin/uiwarp
  std::string probe;                   // absolute path of uiwarp-probe; empty when missing
  std::string core;                    // .../libuiwarp.so.0; empty when missing
  std::string preload;                 // .../libuiwarp-preload.so; empty when missing
  std::string provider;                // .../libuiwarp-rdmavNN.so; empty when missing
  std::string faults;                  // folder of ready-made rules; empty when missing
  std::string provider_prefix;         // what libibverbs appends "-rdmavNN.so" to
  std::vector<std::string> looked_in;  // library directories tried, in order

  bool complete() const { return !core.empty() && !preload.empty() && !provider.empty(); }
};

// Looks beside the binary: first as in the build tree (bin/../lib), then as installed.
Layout find_layout();

// Absolute directory of `path` ("/" for "/x").
std::string directory_of(const std::string& path);

}  // namespace uiw::tool
