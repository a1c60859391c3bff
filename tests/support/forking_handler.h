// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A signal handler that forks, as those of SIGCHLD that start another worker do.
#pragma once

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/in_child.h"

namespace uiw::test {

// Runs `step` again and again, in a child with this thread only, until a handler that interrupts it
// at any moment has forked a hundred times. What the handler's child finds is `check()`: 0 is good.
template <class Step, class Check>
void interrupted_by_forks(Step step, Check check) {
  static Check* checks;
  static volatile sig_atomic_t forks, wrong;
  checks = &check;
  in_child([&] {
    alarm(60);  // ends a child that hangs
    struct sigaction action {};
    action.sa_handler = [](int) {
      const pid_t child = fork();
      if (child == 0) _exit((*checks)());
      int status = 1;
      waitpid(child, &status, 0);
      if (status != 0) wrong = wrong + 1;
      forks = forks + 1;
    };
    sigaction(SIGPROF, &action, nullptr);
    const itimerval often = {{0, 1000}, {0, 1000}};  // of processor time
    setitimer(ITIMER_PROF, &often, nullptr);
    while (forks < 100) step();
    const itimerval never = {};
    setitimer(ITIMER_PROF, &never, nullptr);
    return wrong == 0 ? 0 : 1;
  });
}

}  // namespace uiw::test
