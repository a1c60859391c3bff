// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The value of UIWARP_CHECK: whether to look for misuse, and what to do with findings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace uiw::core {

struct CheckOptions {
  bool on = false;
  uint32_t exit_status = 66;      // exit=1..255: status of a program with findings; 0: its own
  bool halt = false;              // halt=1: end the process at the first finding
  bool github = false;            // github=1: also print annotations for GitHub workflows
  bool hints = false;             // hints=1: also report what is not certain
  uint32_t most = 100;            // max=1..1000000: limit of different findings shown
  std::string_view json;          // json=FILE: append each finding there as it happens
  std::string_view suppressions;  // suppressions=FILE
};

// Parses "off", "on" (or 0, 1) or "NAME=VALUE,...". The views of `out` are into `text`. On failure
// returns false; `out` is undefined then, and `problem` names the word and what is allowed. Thread:
// any.
bool parse_check_options(std::string_view text, CheckOptions& out, std::string* problem = nullptr);

}  // namespace uiw::core
