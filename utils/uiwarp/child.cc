// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/settings.h"
#include "run.h"

namespace uiw::tool {
namespace {

int64_t now_ms() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * int64_t{1000} + ts.tv_nsec / 1000000;
}

// What is recorded, checked and made to fail is the user's programs, and their files stay as they
// are. A wrong value stays in force, for the helper to tell of.
void leave_instruments_out() {
  core::Settings ignored;
  for (const char* name :
       {"UIWARP_TRACE", "UIWARP_CHECK", "UIWARP_FAULTS", "UIWARP_SHAKE", "UIWARP_LOG_FILE"}) {
    const char* const value = getenv(name);
    std::string problem;
    if (value && core::parse_setting(name, value, ignored, problem)) unsetenv(name);
  }
}

int run_plainly(char** argv) {
  for (const char* name : {"LD_PRELOAD", "IBV_DRIVERS", "RDMAV_DRIVERS"}) unsetenv(name);
  execv(argv[0], argv);
  return 126;
}

}  // namespace

bool lists_devices(const ChildResult& result) {
  return result.status == 0 && result.output.find("\nuiw_") != std::string::npos;
}

ChildResult run_child(const Layout& layout, const std::vector<std::string>& arguments, int limit_ms,
                      Visibility how, Collected what) {
  ChildResult result;
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return result;
  const pid_t pid = fork();
  if (pid < 0) {
    close(fds[0]);
    close(fds[1]);
    return result;
  }
  if (pid == 0) {
    setpgid(0, 0);  // so that what it starts is killed with it
    dup2(fds[1], STDOUT_FILENO);
    if (what == Collected::kAll) dup2(fds[1], STDERR_FILENO);
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    leave_instruments_out();
    _exit(how == Visibility::kRun ? run_program(layout, argv.data()) : run_plainly(argv.data()));
  }
  setpgid(pid, pid);
  close(fds[1]);
  const int64_t deadline = now_ms() + limit_ms;
  for (;;) {
    const int64_t left = deadline - now_ms();
    pollfd waiting = {fds[0], POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
      result.timed_out = true;
      kill(-pid, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t size = read(fds[0], buffer, sizeof buffer);
    if (size <= 0) break;
    result.output.append(buffer, static_cast<size_t>(size));
  }
  close(fds[0]);
  int status = 0;
  if (waitpid(pid, &status, 0) == pid)
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace uiw::tool
