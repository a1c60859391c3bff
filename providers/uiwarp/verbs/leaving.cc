// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// For a program that ends without destroying its queue pairs: as before ibv_destroy_qp, their peers
// get time to ask whether what they sent has arrived (session/farewell.cc).
#include <cstdlib>

#include "core/pause.h"
#include "core/tuning.h"
#include "uiwarp/uiwarp-abi.h"
#include "verbs/registry.h"

namespace {

using namespace uiw;

// Runs in exit(), and at the end of main().
__attribute__((destructor)) void leave_at_exit() {
  uiwarp_vk_leave();
}

// quick_exit() runs no destructors.
__attribute__((constructor)) void leave_at_quick_exit() {
  std::at_quick_exit(uiwarp_vk_leave);
}

}  // namespace

// Other threads may still run and destroy queue pairs. This may also be called in a signal handler
// whose thread holds the registry's lock. So nothing here waits for a lock.
void uiwarp_vk_leave() {
  const core::Nanoseconds end = core::now() + core::tuning::kLastQuestion;
  for (;;) {
    bool all_left = true;
    const bool looked = verbs::for_each_queue_pair(
        [](session::QueuePair& one, void* all) {
          if (one.leave()) *static_cast<bool*>(all) = false;
        },
        &all_left);
    if ((looked && all_left) || core::now() >= end) return;
    core::sleep_until(core::now() + core::tuning::kNap);
  }
}
