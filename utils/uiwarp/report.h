// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What `uiwarp doctor` has found, and whether all is well.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace uiw::tool {

enum class ReportAs {
  kText,  // a line for each check, as it is made
  kJson,  // all at the end
};

class Report {
 public:
  explicit Report(ReportAs as) : as_(as) {}

  // `name` is what scripts know the check by: it never changes (uiwarp(1) lists them), and a check
  // that found several things has it several times.

  // What was looked at and found.
  void ok(const char* name, const std::string& what) { add({name, "ok", "ok", what, ""}); }
  // Works, but not as well as it could: `advice` says what to do about it.
  void warn(const char* name, const std::string& what, const std::string& advice);
  // Does not work until `advice` is followed.
  void fail(const char* name, const std::string& what, const std::string& advice);
  // In JSON only. Empty: it cannot be told.
  void version(const char* of, const std::string& text) { versions_.emplace_back(of, text); }
  // The last lines, or the JSON. Whether no check has failed.
  bool finish(const std::string& command) const;

 private:
  struct Entry {
    const char *name, *result;  // in JSON
    const char* mark;           // in text
    std::string what, advice;
  };
  void add(Entry entry);

  const ReportAs as_;
  std::vector<Entry> entries_;
  std::vector<std::pair<const char*, std::string>> versions_;
  int failures_ = 0;
  int warnings_ = 0;
};

}  // namespace uiw::tool
