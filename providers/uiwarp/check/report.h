// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where findings go: standard error, files, and the process's exit status. Each is written as it
// happens, so that a process that is killed has said what it found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/finding.h"
#include "check/forms.h"
#include "check/suppressions.h"
#include "check/symbols.h"
#include "core/check_options.h"
#include "core/fork_mutex.h"

namespace uiw::check {

class Report {
 public:
  // The process's. Never destroyed: libraries close devices after exit handlers and destructors.
  static Report& instance();

  // False: a file that `options` names cannot be used, which is said on standard error. Before the
  // first finding.
  bool configure(const core::CheckOptions& options);
  // A hint is dropped unless hints are wanted. Thread: any, however small its stack; no
  // cancellation point.
  void add(const Finding& finding);
  // `last` may still add what only the end of the process shows. Thread: one at a time.
  void before_end(void (*last)()) { before_end_ = last; }
  // Says how many there were, and ends a process that had findings with their exit status, its
  // output flushed. What comes later is not reported. Thread: the one that exits.
  void end();

 private:
  Report();
  struct Known {
    Finding finding;  // without its texts
    bool suppressed;
  };
  const Known* known(const Finding& finding) const;
  void show(const Finding& finding, const Frames& frames);
  void summarise();
  [[noreturn]] void stop();
  void write_json(const std::string& line);
  void begin_anew();

  void (*before_end_)() = nullptr;
  core::QuietMutex mutex_;
  bool over_ = false;
  bool hints_ = false, halt_ = false, github_ = false;
  unsigned most_ = 0;
  int exit_status_ = 0;
  std::string json_;          // path; empty: none
  bool json_failed_ = false;  // and that was said
  Suppressions suppressions_;
  std::optional<Symbols> symbols_;  // from the first finding on
  std::vector<Known> known_;        // each different one
  Counts counts_;
};

}  // namespace uiw::check
