// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Signals that end the command, as a descriptor: what it runs is ended first.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace uiw::tool {

class EndSignals {
 public:
  // `another` is looked for beside them: SIGCHLD; 0: none.
  explicit EndSignals(int another = 0) {
    sigset_t set;
    sigemptyset(&set);
    for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, each);
    if (another != 0) sigaddset(&set, another);
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

}  // namespace uiw::tool
