// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// While this object lives, its thread takes no signals, and threads that it starts never do:
// signals are for the program's own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace uiw::core {

class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace uiw::core
