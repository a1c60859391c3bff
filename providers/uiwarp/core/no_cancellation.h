// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// While this object lives, its thread is not cancelled. No verb is a cancellation point, but a verb
// may wait for another thread, and an instrument may read and write files in it.
#pragma once

#include <pthread.h>

namespace uiw::core {

class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;

 private:
  int before_;
};

}  // namespace uiw::core
