// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One run of a command under --shake.
#pragma once

#include <string>
#include <vector>

#include "end_signals.h"
#include "kept_output.h"
#include "layout.h"

namespace uiw::tool {

enum class Outcome {
  kPassed,       // exit status 0
  kFailed,       // another one, or a signal ended it
  kHung,         // it was killed at the time-out
  kInterrupted,  // somebody wants us to end
  kNotRun,       // no process or pipe can be made; errno says why
};

struct Run {
  Outcome outcome = Outcome::kNotRun;
  int status = 0;  // of the command, as a shell has it; the signal that interrupted us

  bool failed() const { return outcome == Outcome::kFailed || outcome == Outcome::kHung; }
};

struct ShakenCommand {
  const Layout& layout;
  const std::vector<std::string>& words;
  double timeout;  // seconds
  const EndSignals& signals;

  // With UIWARP_SHAKE=`options`, in a process group of its own, which is killed at the end. What it
  // says is added to `output`.
  Run run(const std::string& options, KeptOutput& output) const;

  // "exit status 3", "not over after 60 s, and killed", "passed".
  std::string text_of(const Run& run) const;
  // The line by which a user repeats it.
  std::string again(const std::string& options) const;
};

// The exit status of ours after a run that says nothing of the command, of which it tells: 125, or
// 128 + the signal that interrupted us. 0: the run says something.
int why_no_result(const Run& run, const std::string& options);

}  // namespace uiw::tool
