// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The lines `uiwarp doctor` prints, and whether all is well.
#pragma once

#include <string>

namespace uiw::tool {

class Report {
 public:
  // One line: what was looked at and found.
  void ok(const std::string& what);
  // Works, but not as well as it could: `advice` says what to do about it.
  void warn(const std::string& what, const std::string& advice);
  // Does not work until `advice` is followed.
  void fail(const std::string& what, const std::string& advice);

  int failures() const { return failures_; }
  int warnings() const { return warnings_; }

 private:
  int failures_ = 0;
  int warnings_ = 0;
};

}  // namespace uiw::tool
