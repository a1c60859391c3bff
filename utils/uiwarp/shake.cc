// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake.h"

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
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "core/clock.h"
#include "end_signals.h"
#include "kept_output.h"
#include "run.h"

namespace uiw::tool {
namespace {

enum class Outcome {
  kPassed,       // exit status 0
  kFailed,       // another one, or a signal ended it
  kHung,         // it was killed at the time-out
  kInterrupted,  // somebody wants us to end
  kNotRun,       // no process or pipe can be made; errno says why
};

// From SIGTERM to SIGKILL: `uiwarp netns-pair` takes two to end what it has started.
constexpr core::Nanoseconds kEnding = 3 * core::kSecond;

struct Run {
  Outcome outcome = Outcome::kNotRun;
  int status = 0;  // of the command, as a shell has it; the signal that interrupted us
};

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

Run run_once(const Layout& layout, const ShakePlan& plan, const std::vector<std::string>& command,
             const EndSignals& signals, KeptOutput& output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  // Ours only: the program's end blocks as it expects.
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t pid = fork();
  if (pid == 0) become(layout, command, ends[1], signals);
  const int error = errno;
  close(ends[1]);
  Run run;
  if (pid > 0) {
    setpgid(pid, pid);
    run = wait_for(pid, ends[0], plan.timeout, signals, output);
  } else {
    errno = error;
  }
  const int reason = errno;
  close(ends[0]);
  errno = reason;
  return run;
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

void tell(const Run& run, const std::string& seed, const ShakePlan& plan,
          const std::vector<std::string>& command) {
  if (run.outcome == Outcome::kHung)
    fprintf(stderr, "uiwarp: seed %s: not over after %g s, and killed", seed.c_str(), plan.timeout);
  else
    fprintf(stderr, "uiwarp: seed %s: exit status %d", seed.c_str(), run.status);
  fprintf(stderr, "; again by (it may take several runs):\n    uiwarp run --shake %s --",
          seed.c_str());
  for (const std::string& word : command) fprintf(stderr, " %s", quoted(word).c_str());
  fputs("\n", stderr);
}

}  // namespace

int shake(const Layout& layout, const ShakePlan& plan, const std::vector<std::string>& command) {
  if (const int status = why_not_started(layout, command)) return status;
  if (!(plan.timeout > 0)) {  // what is no number, too
    fputs("uiwarp: --timeout: a number of seconds is wanted\n", stderr);
    return 2;
  }
  signal(SIGCHLD, SIG_DFL);  // ignored, the status of a run would be lost
  const EndSignals signals;
  for (uint64_t i = 0; i < plan.runs; ++i) {
    const std::string seed = std::to_string(plan.first_seed + i);
    setenv("UIWARP_SHAKE", seed.c_str(), 1);
    KeptOutput output;
    const Run run = run_once(layout, plan, command, signals, output);
    const int error = errno;
    if (run.outcome == Outcome::kFailed || run.outcome == Outcome::kHung) {
      output.print(stdout);
      tell(run, seed, plan, command);
      return 1;
    }
    if (run.outcome == Outcome::kInterrupted) return 128 + run.status;
    if (run.outcome == Outcome::kNotRun) {
      fprintf(stderr, "uiwarp: seed %s: cannot be run: %s\n", seed.c_str(), strerror(error));
      return 125;
    }
  }
  printf("%" PRIu64 " runs, seeds %" PRIu64 " to %" PRIu64 ": none failed\n", plan.runs,
         plan.first_seed, plan.first_seed + plan.runs - 1);
  return 0;
}

}  // namespace uiw::tool
