// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ids of rdma_cm whose rdma_destroy_id() waits, in librdmacm, until all events were acknowledged
// that the program got of them. rdma_ack_cm_event() is librdmacm's own matter; that its caller
// waits for a condition inside of the id is seen from outside.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "check/blocked_thread.h"
#include "check/finding.h"

namespace uiw::check {

// The first bytes of librdmacm's structure, which begins with a struct rdma_cm_id: device, channel,
// the program's context, queue pair. The same as long as it was not freed.
using IdBytes = std::array<uint64_t, 4>;
std::optional<IdBytes> bytes_of_id(uint64_t uid);

// What was seen of a thread that has called rdma_destroy_id().
struct Destroying {
  uint64_t uid = 0;
  IdBytes bytes{};  // when the kernel's part was done
  uint32_t events = 0;
  unsigned looks = 0;
  Stack called;
  std::optional<Stack> last_event;  // where it was taken
};

// Whether the thread, which is blocked in `call`, is in that rdma_destroy_id() still. `now`: of the
// id, none when its memory is gone. Pure.
bool still_waits(const Destroying& destroying, const SystemCall& call,
                 const std::optional<IdBytes>& now);

// Thread: one at a time.
class DestroyedIds {
 public:
  void event_taken(uint64_t uid, const Stack& here) { last_events_[uid] = here; }
  // By thread `tid`. False: there is nothing to wait for.
  bool destroyed(uint64_t uid, uint32_t events, const Stack& here, int tid);
  // To be called every half second: adds what has waited for a second.
  void look(std::vector<Finding>& findings);

 private:
  std::unordered_map<uint64_t, Stack> last_events_;  // by uid
  std::unordered_map<int, Destroying> destroying_;   // by thread: the last one of each
};

}  // namespace uiw::check
