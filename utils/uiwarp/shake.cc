// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "environment.h"
#include "run.h"
#include "target.h"

namespace uiw::tool {
namespace {

enum class Outcome {
  kPassed,       // exit status 0
  kFailed,       // another one, or a signal ended it
  kHung,         // it was killed at the time-out
  kInterrupted,  // somebody wants us to end
  kNotRun,       // no process or file can be made; errno says why
};

struct Run {
  Outcome outcome = Outcome::kNotRun;
  int status = 0;  // of the command, as a shell has it; the signal that interrupted us
};

// Signals that end us, as a descriptor: what runs is killed first.
class EndSignals {
 public:
  EndSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, each);
    sigprocmask(SIG_BLOCK, &set, &before_);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~EndSignals() {
    close(fd_);
    let_through();
  }
  EndSignals(const EndSignals&) = delete;
  int fd() const { return fd_; }
  // As it was before, for what is executed.
  void let_through() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  // 0: none has come.
  int taken() const {
    signalfd_siginfo info;
    return read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  int fd_;
  sigset_t before_;
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
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  _exit(run_program(layout, argv.data()));
}

Run wait_for(pid_t pid, double timeout, const EndSignals& signals) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const int error = errno;
  pollfd waiting[] = {{process, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  const int ready =
      process < 0 ? 0 : poll(waiting, std::size(waiting), static_cast<int>(timeout * 1000));
  if (process >= 0) close(process);
  const int signal = signals.taken();
  // What it has started and left, too.
  kill(-pid, SIGKILL);
  int status = 0;
  const bool ended_here = waitpid(pid, &status, 0) == pid;
  errno = ended_here ? error : errno;
  if (process < 0 || !ended_here) return {};
  if (signal != 0) return {Outcome::kInterrupted, signal};
  if (ready == 0) return {Outcome::kHung, 0};
  const int ended = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return {ended == 0 ? Outcome::kPassed : Outcome::kFailed, ended};
}

Run run_once(const Layout& layout, const ShakePlan& plan, const std::vector<std::string>& command,
             int output, const EndSignals& signals) {
  const pid_t pid = fork();
  if (pid < 0) return {};
  if (pid == 0) become(layout, command, output, signals);
  setpgid(pid, pid);
  return wait_for(pid, plan.timeout, signals);
}

void print_output(int output) {
  fflush(stdout);
  char buffer[4096];
  off_t at = 0;
  for (ssize_t size; (size = pread(output, buffer, sizeof buffer, at)) > 0; at += size)
    fwrite(buffer, 1, static_cast<size_t>(size), stdout);
  fflush(stdout);
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
  fprintf(stderr, "; again by:\n    uiwarp run --shake %s --", seed.c_str());
  for (const std::string& word : command) fprintf(stderr, " %s", quoted(word).c_str());
  fputs("\n", stderr);
}

// 0: it can be started; else the exit status, and it has been said why not.
int why_not(const Layout& layout, const std::vector<std::string>& command) {
  const std::string incomplete = why_incomplete(layout);
  if (!incomplete.empty()) {
    fprintf(stderr, "uiwarp: %s\n", incomplete.c_str());
    return 125;
  }
  int error = 0;
  if (!find_program(command.front().c_str(), error).empty()) return 0;
  fprintf(stderr, "uiwarp: program '%s' cannot be started: %s\n", command.front().c_str(),
          strerror(error));
  return error == ENOENT ? 127 : 126;
}

}  // namespace

int shake(const Layout& layout, const ShakePlan& plan, const std::vector<std::string>& command) {
  if (const int status = why_not(layout, command)) return status;
  if (!(plan.timeout > 0)) {  // what is no number, too
    fputs("uiwarp: --timeout: a number of seconds is wanted\n", stderr);
    return 2;
  }
  signal(SIGCHLD, SIG_DFL);  // ignored, the status of a run would be lost
  const EndSignals signals;
  for (uint64_t i = 0; i < plan.runs; ++i) {
    const std::string seed = std::to_string(plan.first_seed + i);
    setenv("UIWARP_SHAKE", seed.c_str(), 1);
    const int output = memfd_create("uiwarp-shake", MFD_CLOEXEC);
    const Run run = output < 0 ? Run{} : run_once(layout, plan, command, output, signals);
    const int error = errno;
    const bool is_of_interest = run.outcome == Outcome::kFailed || run.outcome == Outcome::kHung;
    if (is_of_interest) print_output(output);
    if (output >= 0) close(output);
    if (is_of_interest) {
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
