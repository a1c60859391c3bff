// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What `uiwarp doctor` has found, and whether all is well.
#pragma once

#include <string>
#include <vector>

namespace uiw::tool {

enum class ReportAs {
  kText,  // a line for each check, as it is made
  kJson,  // all at the end
};

class Report {
 public:
  explicit Report(ReportAs as) : as_(as) {}

  // What was looked at and found.
  void ok(const std::string& what) { add({"ok", "ok", what, ""}); }
  // Works, but not as well as it could: `advice` says what to do about it.
  void warn(const std::string& what, const std::string& advice);
  // Does not work until `advice` is followed.
  void fail(const std::string& what, const std::string& advice);
  // The last lines, or the JSON. Whether no check has failed.
  bool finish(const std::string& command) const;

 private:
  struct Entry {
    const char *result, *mark;  // in JSON, and in text
    std::string what, advice;
  };
  void add(Entry entry);

  const ReportAs as_;
  std::vector<Entry> entries_;
  int failures_ = 0;
  int warnings_ = 0;
};

}  // namespace uiw::tool
