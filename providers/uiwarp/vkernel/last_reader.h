// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The thread that took the latest event of a channel and has not asked for another one yet.
//
// Programs keep a thread in rdma_get_cm_event() and end like this: it takes DISCONNECTED, another
// thread sees that and closes the channel, and the first one, which comes back an instant later,
// gets EBADF and takes it for a failure. rping before rdma-core 61 does so, on any device. Whoever
// closes therefore gives such a thread that instant.
#pragma once

#include <atomic>

#include "core/clock.h"

namespace uiw::vkernel {

class LastReader {
 public:
  // The calling thread waits for an event.
  void comes();
  // The calling thread has one and goes.
  void goes();
  // Sleeps until the thread that went is back or has ended, but no longer than until `at_most`
  // nanoseconds have passed since it went. At once when the calling thread is that one.
  void await(core::Nanoseconds at_most) const;

 private:
  std::atomic<int> away_{0};  // its number; 0: none
  std::atomic<core::Nanoseconds> since_{0};
};

}  // namespace uiw::vkernel
