// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/report.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/no_cancellation.h"
#include "core/own_stack.h"
#include "core/raw_sys.h"
#include "core/read_file.h"
#include "core/standard_error.h"

namespace uiw::check {
namespace {

namespace sys = core::sys;

// Whole, so that what several processes write stays apart. 0 or errno.
int write_all(int fd, const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const long result = sys::write(fd, text.data() + written, text.size() - written);
    if (result == -EINTR) continue;
    if (result <= 0) return static_cast<int>(-result);
    written += static_cast<size_t>(result);
  }
  return 0;
}

// 0 or errno. Opened for each: a program may close descriptors that it did not open.
int append_to(const std::string& path, const std::string& text) {
  // Non-blocking, since a FIFO may have no reader, or one that reads nothing: what finds no room
  // there is lost.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  const int fd = sys::open(path.c_str(), kFlags, 0666);
  if (fd < 0) return -fd;
  const int error = write_all(fd, text);
  sys::close(fd);
  return error;
}

void complain(const char* option, const std::string& path, const char* what) {
  core::write_to_standard_error(std::string("uiwarp: UIWARP_CHECK: ") + option + "=" + path + ": " +
                                what + "\n");
}

// Finding out what addresses mean wants more stack than a program's thread may have.
struct LookUp {
  Symbols& symbols;
  const Finding& finding;
  Frames frames{};

  static void run(void* argument) {
    auto& self = *static_cast<LookUp*>(argument);
    for (const Place& place : self.finding.places)
      self.frames.push_back(self.symbols.frames_of(place.stack.calls()));
  }
};

Frames look_up(Symbols& symbols, const Finding& finding) {
  constexpr size_t kStack = 1024 * 1024;
  LookUp job{symbols, finding};
  if (core::run_on_own_thread(kStack, LookUp::run, &job)) return std::move(job.frames);
  Frames addresses;
  for (const Place& place : finding.places) {
    addresses.emplace_back();
    for (const uintptr_t address : place.stack.calls().addresses())
      addresses.back().push_back({.function = {}, .file = {}, .module = {}, .offset = address});
  }
  return addresses;
}

Report* the_report = nullptr;

// After exit handlers and the program's own destructors.
__attribute__((destructor)) void at_end() {
  if (the_report) the_report->end();
}

}  // namespace

Report& Report::instance() {
  static std::once_flag once;
  std::call_once(once, [] { the_report = new Report; });
  return *the_report;
}

Report::Report() {
  pthread_atfork([] { the_report->mutex_.lock(); }, [] { the_report->mutex_.unlock(); },
                 [] {
                   the_report->begin_anew();
                   the_report->mutex_.unlock();
                 });
}

// A child reports what it finds itself.
void Report::begin_anew() {
  counts_ = {};
  known_.clear();
  json_failed_ = false;
}

bool Report::configure(const core::CheckOptions& options) {
  hints_ = options.hints;
  halt_ = options.halt;
  github_ = options.github;
  most_ = options.most;
  exit_status_ = static_cast<int>(options.exit_status);
  if (!options.suppressions.empty()) {
    const std::string path(options.suppressions);
    std::string text;
    if (const std::string problem = core::read_file(path, text); !problem.empty()) {
      complain("suppressions", path, problem.c_str());
      return false;
    }
    if (const std::string wrong = suppressions_.parse(text); !wrong.empty()) {
      complain("suppressions", path, wrong.c_str());
      return false;
    }
  }
  if (!options.json.empty()) {
    // Programs change directories; and one may have begun in a directory that is gone (getcwd(3)).
    std::error_code problem;
    json_ = std::filesystem::absolute(options.json, problem).string();
    if (problem) {
      complain("json", std::string(options.json),
               ("the working directory has no path (" + problem.message() +
                "): name the file by its whole path")
                   .c_str());
      return false;
    }
    if (const int error = append_to(json_, {})) {
      complain("json", json_,
               error == ENXIO ? "it is a FIFO that nobody reads: start its reader first"
                              : strerrordesc_np(error));
      return false;
    }
  }
  return true;
}

const Report::Known* Report::known(const Finding& finding) const {
  const auto same = std::ranges::find_if(known_, [&](const Known& one) {
    return one.finding.kind == finding.kind && one.finding.hint == finding.hint &&
           std::ranges::equal(one.finding.places, finding.places,
                              [](const Place& a, const Place& b) {
                                return a.stack == b.stack && std::strcmp(a.label, b.label) == 0;
                              });
  });
  return same == known_.end() ? nullptr : &*same;
}

void Report::add(const Finding& finding) {
  if (finding.hint && !hints_) return;
  const core::NoCancellation whole;
  const std::lock_guard hold(mutex_);
  if (over_) return;
  if (const Known* const before = known(finding)) {
    ++(before->suppressed ? counts_.suppressed : counts_.repeated);
    return;
  }
  if (!symbols_) symbols_.emplace();
  const Frames frames = look_up(*symbols_, finding);
  const bool suppressed = suppressions_.match(finding, frames);
  known_.push_back({{finding.kind, {}, {}, {}, finding.places, finding.hint}, suppressed});
  if (suppressed) {
    ++counts_.suppressed;
    return;
  }
  counts_.hints += finding.hint;
  if (counts_.shown == most_) {
    ++counts_.beyond_max;
    return;
  }
  ++counts_.shown;
  show(finding, frames);
  if (halt_) stop();
}

void Report::show(const Finding& finding, const Frames& frames) {
  const int pid = getpid();
  core::write_to_standard_error(as_text(finding, frames, pid));
  if (github_) core::write_to_standard_error(as_github(finding, frames));
  write_json(as_json(finding, frames, pid));
}

// Of a FIFO whose reader is slow nothing is said: that is what it was told to do.
void Report::write_json(const std::string& line) {
  const int error = json_.empty() ? 0 : append_to(json_, line);
  if (error == 0 || error == EAGAIN || error == ENXIO || std::exchange(json_failed_, true)) return;
  complain("json", json_,
           (std::string(strerrordesc_np(error)) + ": findings are lost there").c_str());
}

void Report::summarise() {
  const int pid = getpid();
  core::write_to_standard_error(summary_text(counts_, pid));
  write_json(summary_json(counts_, pid));
}

void Report::stop() {
  summarise();
  // The program's status where no other is wanted: it has failed all the same.
  _exit(exit_status_ ? exit_status_ : 1);
}

void Report::end() {
  if (before_end_) before_end_();
  const std::lock_guard hold(mutex_);
  if (std::exchange(over_, true)) return;
  if (!counts_.any() && counts_.suppressed == 0) return;
  summarise();
  if (!counts_.any() || exit_status_ == 0) return;
  std::fflush(nullptr);
  _exit(exit_status_);
}

}  // namespace uiw::check
