// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/destroyed_ids.h"

#include <iterator>

#include "check/text.h"
#include "core/last_thread.h"

namespace uiw::check {
namespace {

// Bytes of librdmacm's structure: there is the condition. 44 has 648, 64 a little more.
constexpr uint64_t kIdSize = 1024;

Finding finding_of(const Destroying& destroying) {
  Finding finding{Kind::kNotAcknowledged, "rdma_destroy_id", {}, {}, {}};
  finding.what = text(
      "it has waited for a second: the program got %u %s of this id, and has not called "
      "rdma_ack_cm_event() for %s",
      destroying.events, destroying.events == 1 ? "event" : "events",
      destroying.events == 1 ? "it" : "at least one of them");
  finding.places.push_back({"called", destroying.called});
  if (destroying.last_event)
    finding.places.push_back({"last event of the id got", *destroying.last_event});
  return finding;
}

}  // namespace

std::optional<IdBytes> bytes_of_id(uint64_t uid) {
  IdBytes bytes;
  if (!read_own_memory(uid, bytes.data(), sizeof bytes)) return std::nullopt;
  return bytes;
}

bool still_waits(const Destroying& destroying, const SystemCall& call,
                 const std::optional<IdBytes>& now) {
  return now == destroying.bytes && waits_by_futex_in(call, destroying.uid, kIdSize);
}

bool DestroyedIds::destroyed(uint64_t uid, uint32_t events, const Stack& here, int tid) {
  const auto last = last_events_.find(uid);
  std::optional<Stack> last_event;
  if (last != last_events_.end()) {
    last_event = last->second;
    last_events_.erase(last);
  }
  const std::optional<IdBytes> bytes = events > 0 ? bytes_of_id(uid) : std::nullopt;
  if (!bytes) {
    destroying_.erase(tid);
    return false;
  }
  destroying_[tid] = {uid, *bytes, events, 0, here, last_event};
  return true;
}

void DestroyedIds::look(std::vector<Finding>& findings) {
  constexpr unsigned kPatience = 3;  // looks: a second has gone by at the third
  for (auto entry = destroying_.begin(); entry != destroying_.end();) {
    auto& [tid, destroying] = *entry;
    const std::optional<SystemCall> call = blocked_in(tid);
    bool is_over = !call || !still_waits(destroying, *call, bytes_of_id(destroying.uid));
    if (!is_over && ++destroying.looks == kPatience) {
      findings.push_back(finding_of(destroying));
      // Another thread may acknowledge them later.
      findings.back().hint = !core::program_has_one_thread();
      is_over = true;
    }
    entry = is_over ? destroying_.erase(entry) : std::next(entry);
  }
}

}  // namespace uiw::check
