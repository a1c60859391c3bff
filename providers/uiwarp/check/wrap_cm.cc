// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is heard of rdma_cm.
#include "check/watch.h"
#include "check/wraps.h"
#include "core/no_cancellation.h"

namespace uiw::check::wrap {

// Both inside of librdmacm's write() to the kernel, which is a cancellation point: a lock is held
// here.
void cm_event_taken(uint64_t uid, uint32_t event, int status) {
  const core::NoCancellation whole;
  Stack here;
  capture(here);
  watch::event_taken(uid, here);
  next->cm_event_taken(uid, event, status);
}

void cm_id_destroyed(uint64_t uid, uint32_t events) {
  const core::NoCancellation whole;
  Stack here;
  capture(here);
  report_queue_pair_of(uid, here);
  watch::id_destroyed(uid, events, here);
  next->cm_id_destroyed(uid, events);
}

}  // namespace uiw::check::wrap
