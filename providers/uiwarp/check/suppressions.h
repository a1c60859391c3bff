// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Findings that a user knows of and does not want to see. A file of lines "KIND:GLOB": findings of
// that kind ("*": of any) are left out when a function on one of their stacks matches the glob, as
// fnmatch(3) has it. Empty lines and lines that begin with '#' say nothing. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/forms.h"

namespace uiw::check {

class Suppressions {
 public:
  // What is wrong with `text`, with the line's number: "line 3: there is no kind 'x'; ...". Empty:
  // nothing, and the rules are those of `text` now.
  std::string parse(std::string_view text);
  bool match(const Finding& finding, const Frames& frames) const;

 private:
  struct Rule {
    std::string kind;  // "*": any
    std::string function;
  };
  std::vector<Rule> rules_;
};

}  // namespace uiw::check
