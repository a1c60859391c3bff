// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shaken_command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "core/clock.h"
#include "run.h"

namespace uiw::tool {
namespace {

// From SIGTERM to SIGKILL: `uiwarp netns-pair` takes two to end what it has started.
constexpr core::Nanoseconds kEnding = 3 * core::kSecond;

// A group of its own, so that all it starts can be killed; without our input, for which it would
// have to be in the foreground of the terminal.
[[noreturn]] void become(const Layout& layout, const std::vector<std::string>& command, int output,
                         const EndSignals& signals) {
  setpgid(0, 0);
  signals.let_through();
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  _exit(run_program(layout, command));
}

// Takes what a pipe has at most, once, so that nobody who writes without end keeps us here. False:
// no more will come.
bool take_output(int from, KeptOutput& output) {
  char buffer[64 * 1024];
  const ssize_t size = read(from, buffer, sizeof buffer);
  if (size > 0) output.add({buffer, static_cast<size_t>(size)});
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

int milliseconds_until(core::Nanoseconds end) {
  const core::Nanoseconds left = (end - core::now()) / core::kMillisecond + 1;
  return static_cast<int>(std::clamp<core::Nanoseconds>(left, 0, INT_MAX));
}

enum class Wait { kEnded, kTimedOut, kSignal };

// Until the process has ended or is not to be waited for any longer. What it says is taken
// meanwhile.
Wait wait_until(int process, int from, core::Nanoseconds end, const EndSignals& signals,
                KeptOutput& output) {
  pollfd waiting[] = {{process, POLLIN, 0}, {signals.fd(), POLLIN, 0}, {from, POLLIN, 0}};
  for (;;) {
    const int left = milliseconds_until(end);
    if (poll(waiting, std::size(waiting), left) < 0 && errno != EINTR) return Wait::kTimedOut;
    if (waiting[2].revents && !take_output(from, output)) waiting[2].fd = -1;
    if (waiting[0].revents) return Wait::kEnded;
    if (waiting[1].revents) return Wait::kSignal;
    if (left == 0) return Wait::kTimedOut;
  }
}

Run wait_for(pid_t pid, int from, double timeout, const EndSignals& signals, KeptOutput& output) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const int error = errno;
  const auto nanoseconds = timeout * static_cast<double>(core::kSecond);
  const core::Nanoseconds end =
      core::now() + (nanoseconds < 1e18 ? static_cast<core::Nanoseconds>(nanoseconds)
                                        : core::Nanoseconds{1'000'000'000'000'000'000});
  const Wait wait = process < 0 ? Wait::kTimedOut : wait_until(process, from, end, signals, output);
  const int signal = signals.taken();
  if (process >= 0 && wait != Wait::kEnded) {
    kill(-pid, SIGTERM);
    wait_until(process, from, core::now() + kEnding, signals, output);
  }
  if (process >= 0) close(process);
  // What it has started and left, too.
  kill(-pid, SIGKILL);
  int status = 0;
  const bool ended_here = waitpid(pid, &status, 0) == pid;
  errno = ended_here ? error : errno;
  if (process < 0 || !ended_here) return {};
  take_output(from, output);
  if (signal != 0) return {Outcome::kInterrupted, signal};
  if (wait == Wait::kTimedOut) return {Outcome::kHung, 0};
  const int ended = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return {ended == 0 ? Outcome::kPassed : Outcome::kFailed, ended};
}

// As a shell takes it for one word.
std::string quoted(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (const char each : word) result += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return result + "'";
}

}  // namespace

Run ShakenCommand::run(const std::string& options, KeptOutput& output) const {
  setenv("UIWARP_SHAKE", options.c_str(), 1);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  // Ours only: the program's end blocks as it expects.
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t pid = fork();
  if (pid == 0) become(layout, words, ends[1], signals);
  const int error = errno;
  close(ends[1]);
  Run run;
  if (pid > 0) {
    setpgid(pid, pid);
    run = wait_for(pid, ends[0], timeout, signals, output);
  } else {
    errno = error;
  }
  const int reason = errno;
  close(ends[0]);
  errno = reason;
  return run;
}

std::string ShakenCommand::text_of(const Run& run) const {
  char text[64] = "passed";
  if (run.outcome == Outcome::kHung)
    snprintf(text, sizeof text, "not over after %g s, and killed", timeout);
  else if (run.failed())
    snprintf(text, sizeof text, "exit status %d", run.status);
  return text;
}

std::string ShakenCommand::again(const std::string& options) const {
  std::string text = "uiwarp run --shake " + options + " --";
  for (const std::string& word : words) text += " " + quoted(word);
  return text;
}

int why_no_result(const Run& run, const std::string& options) {
  if (run.outcome == Outcome::kInterrupted) return 128 + run.status;
  if (run.outcome != Outcome::kNotRun) return 0;
  fprintf(stderr, "uiwarp: seed %s: cannot be run: %s\n", options.c_str(), strerror(errno));
  return 125;
}

}  // namespace uiw::tool
