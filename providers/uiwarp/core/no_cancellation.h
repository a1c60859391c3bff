// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// While it lives its thread is not cancelled: a verb may wait for another thread, and an instrument
// read and write files in it, but no verb is a cancellation point.
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
