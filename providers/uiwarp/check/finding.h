// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One misuse that was seen: what is wrong, with which object, and the calls that led to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/kinds.h"
#include "check/stack.h"

namespace uiw::check {

struct Place {
  const char* label;  // "posted", "created", ...
  Stack stack;
};

struct Finding {
  Kind kind;
  std::string object;             // "queue pair 0x1234"
  std::optional<uint64_t> wr_id;  // of the request at fault
  std::string what;               // a sentence without its full stop
  std::vector<Place> places;
  bool hint = false;  // it need not be a mistake
};

}  // namespace uiw::check
