// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Small requests that are posted in quick succession are sent together: a system call each would be
// most of what they cost. A request lingers only
// - behind others that followed each other faster than anybody can have waited for an answer,
// - while the completion queue is polled, where whoever finds it empty sends first, or posted for
//   without a pause,
// - until there are enough of them.
// Should both cease, the engine sends what lies there when it looks next, and for a time nothing
// lingers. So a lone request, and the few that belong together, leave at once. Thread: any.
// doc/decisions/006.
//
// Reads and atomics gather besides, however slowly they are posted, while many others are on their
// way (qp/tx.cc says how many) and the queue pair is in a poll group: until a poll finds no octets
// for any queue pair there, and until the engine's looks as above. doc/decisions/019.
#include <algorithm>

#include "core/clock.h"
#include "core/flag.h"
#include "core/settings.h"
#include "session/state.h"

namespace uiw::session {

namespace {

constexpr core::Nanoseconds kQuick = 500;  // from one post's end to the next one's beginning
constexpr uint32_t kQuickPosts = 8;        // in a row, before one lingers
constexpr uint32_t kAskAgain = 256;        // quick posts until a poll group is asked for again
constexpr uint32_t kEnoughRequests = 64, kEnoughOctets = 256 * 1024;
// Posts until it is tried again after one lay too long: few at first, twice as many each time,
// unless it went well for long in between.
constexpr uint32_t kPatience = 64, kMostPatience = 16 * 1024, kWentWell = 4096;
constexpr uint32_t kGatherPatience = 1024;  // turns of the sender, the same

// Of this thread, on whatever queue pair: programs with several of them post to each by turns.
struct Poster {
  uint64_t ended = 0;     // the last post, in ticks
  uint32_t in_a_row = 0;  // posts in quick succession
};
thread_local Poster poster;

}  // namespace

void State::after_post(uint32_t requests, uint64_t octets) {
  if (may_linger(requests, octets)) return;
  unsent_requests.store(0, std::memory_order_relaxed);
  unsent_octets.store(0, std::memory_order_relaxed);
  core::take_down(unsent);  // whoever set it finds its request sent
  sender.try_run();
  poster.ended = core::ticks();
}

bool State::may_linger(uint32_t requests, uint64_t octets) {
  if (requests >= kEnoughRequests || octets >= kEnoughOctets || !core::settings().poll_progress)
    return false;
  const uint64_t now = core::ticks();
  const bool quick = now - poster.ended < core::ticks_in(kQuick);
  poster.ended = now;
  poster.in_a_row = quick ? poster.in_a_row + 1 : 0;
  if (poster.in_a_row < kQuickPosts) return false;
  if (const uint32_t left = patience.load(std::memory_order_relaxed); left > 0) {
    patience.store(left - 1, std::memory_order_relaxed);
    return false;
  }
  if (!has_poller.load(std::memory_order_relaxed)) {
    const uint32_t count = unpolled_posts.load(std::memory_order_relaxed);
    unpolled_posts.store(count + 1, std::memory_order_relaxed);
    if (count % kAskAgain == 0) ring(kBurst);
    return false;
  }
  const uint32_t all_requests = unsent_requests.load(std::memory_order_relaxed) + requests;
  const uint64_t all_octets = unsent_octets.load(std::memory_order_relaxed) + octets;
  if (all_requests >= kEnoughRequests || all_octets >= kEnoughOctets) return false;
  unsent_requests.store(all_requests, std::memory_order_relaxed);
  unsent_octets.store(static_cast<uint32_t>(all_octets), std::memory_order_relaxed);
  lingered.store(lingered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  unsent.store(true, std::memory_order_seq_cst);
  // The engine, taking the queue pair from its pollers, either sees `unsent` or is seen here.
  return has_poller.load(std::memory_order_seq_cst);
}

bool State::send_unsent() {
  if (!core::take_down(unsent)) return false;
  unsent_requests.store(0, std::memory_order_relaxed);
  unsent_octets.store(0, std::memory_order_relaxed);
  sender.try_run();
  return true;
}

bool State::send_gathered() {
  if (!core::take_down(gathered)) return false;
  sender.ask(kStartCoalesced);
  return true;
}

void State::send_what_waits() {
  send_unsent();
  send_gathered();
}

void State::send_overdue() {
  const uint64_t sent = sender.bytes_sent();
  const bool still = std::exchange(octets_at_look, sent) == sent;
  if (still && send_unsent()) {
    if (lingered.exchange(0, std::memory_order_relaxed) > kWentWell) last_patience = 0;
    last_patience = std::clamp(2 * last_patience, kPatience, kMostPatience);
    patience.store(last_patience, std::memory_order_relaxed);
  }
  if (still && send_gathered()) gather_patience.store(kGatherPatience, std::memory_order_relaxed);
}

bool State::may_gather() {
  if (!has_poller.load(std::memory_order_relaxed)) return false;
  const uint32_t left = gather_patience.load(std::memory_order_relaxed);
  if (left > 0) gather_patience.store(left - 1, std::memory_order_relaxed);
  return left == 0;
}

bool State::leave_gathered() {
  if (!gathered.load(std::memory_order_relaxed)) gathered.store(true, std::memory_order_seq_cst);
  // The engine, taking the queue pair from its pollers, either sees this or is seen here.
  return has_poller.load(std::memory_order_seq_cst);
}

}  // namespace uiw::session
