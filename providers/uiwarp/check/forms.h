// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A finding as people and as scripts read it. Pure.
#pragma once

#include <string>
#include <vector>

#include "check/finding.h"
#include "check/symbols.h"

namespace uiw::check {

// For each of a finding's places, in that order.
using Frames = std::vector<std::vector<Frame>>;

// A block of lines, as on standard error. `pid`: of the process.
std::string as_text(const Finding& finding, const Frames& frames, int pid);
// One line; doc/check.md has the schema.
std::string as_json(const Finding& finding, const Frames& frames, int pid);
// An annotation of GitHub's workflows, one line, at the innermost line of source that is known.
std::string as_github(const Finding& finding, const Frames& frames);

// How many there were, for the last line.
struct Counts {
  unsigned shown = 0;       // different ones
  unsigned hints = 0;       // of all different ones, these are hints
  unsigned repeated = 0;    // that were the same as one before
  unsigned beyond_max = 0;  // different ones that were not shown any more
  unsigned suppressed = 0;

  bool any() const { return shown + beyond_max > 0; }
  unsigned findings() const { return shown + beyond_max - hints; }
};
std::string summary_text(const Counts& counts, int pid);
std::string summary_json(const Counts& counts, int pid);

}  // namespace uiw::check
