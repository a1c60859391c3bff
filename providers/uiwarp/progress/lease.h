// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A lease lets the threads that poll a completion queue make progress for queue pairs, in place of
// the engine: a thread that busy-polls finds its message without another thread having to be woken
// for it. doc/decisions/006 says what that gains.
//
// A poller that finds the queue empty receives for those members whose receiving was leased, sends
// what their full sockets left behind, and sends what their posts deferred. The engine grants the
// lease (progress/grant_policy.h). It looks at the lease from time to time, unless a poll postpones
// that. It revokes the lease when it was unused for kLeaseSilence, when the queue is armed, and
// when a member needs something that only the engine may do.
//
// The list of members belongs to the holder of the lease's role: a poller that makes progress, or
// the engine while it grants, looks and revokes. Neither waits for the other.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>

#include "core/pages.h"
#include "core/spinlock.h"
#include "core/tuning.h"
#include "engine/engine.h"
#include "progress/lease_policy.h"
#include "progress/member.h"
#include "queue/completion_queue.h"
#include "queue/role.h"

namespace uiw::progress {

class Lease final : public queue::Progress, public engine::Watch {
 public:
  // The lease of a completion queue's pollers, created if there is none. Null when out of memory,
  // or when the queue belongs to another engine. Lives as long as the queue. Thread: engine.
  static Lease* of(engine::Engine& engine, queue::CompletionQueue& cq);
  // One lease that is held by the pollers of both queues: polling or arming either counts for it.
  // Null also when the queues already have different leases. Thread: engine.
  static Lease* of_both(engine::Engine& engine, queue::CompletionQueue& first,
                        queue::CompletionQueue& second);

  // Adds `member` unless it is one already. `receiving`: the pollers receive for it from now on.
  // False when there is no room or a poller holds the role just now. Thread: engine.
  bool grant(Member& member, bool receiving);
  // Removes `member`. False when a poller holds the role just now: it posts `member` to the engine
  // when it leaves. Thread: engine.
  bool revoke(Member& member);

  // A member has posted as part of a burst. Thread: any.
  void posted(uint64_t now) { posted_at_.store(now, std::memory_order_relaxed); }
  // A member has deferred something, and its waits_since() already says so. The engine looks within
  // kMostDeferred unless a poll comes first. True: this call set a timer, which took some time.
  // Thread: any.
  bool deferred(uint64_t now);

  void progress() override;
  void on_arm() override;

 private:
  class Shared;
  static constexpr size_t kBufferSize = 256 * 1024;

  Lease(engine::Engine& engine, queue::CompletionQueue& cq);
  void expire() override;
  void remove(size_t index);
  void leave();
  // For the holder of the role. set_look() is for the holder of look_lock_; bring_forward() takes
  // that lock, on any thread.
  std::span<Member* const> members() const {
    return {members_.data(), count_.load(std::memory_order_relaxed)};
  }
  bool any(bool (*is)(const Member*)) const;
  uint64_t oldest() const;
  uint64_t due_in(uint64_t now) const;
  void send_old(uint64_t now, bool left);
  void look_in(uint64_t ticks, uint64_t now);
  void set_look(uint64_t ticks, uint64_t now);
  void bring_forward(uint64_t now);
  static bool needs_polls(const Member* member);

  engine::Engine& engine_;
  queue::CompletionQueue& cq_;
  queue::Role role_;
  std::atomic<size_t> count_{0};                              // changed by the holder
  std::array<Member*, core::tuning::kMostLeased> members_{};  // the holder's
  std::atomic<bool> armed_{false};                            // the queue was armed
  std::atomic<bool> look_missed_{false};                      // a look found the role taken
  core::Pages buffer_;                                        // the holder's
  uint32_t empty_rounds_ = 0;                                 // the holder's
  uint64_t progress_at_ = 0;                                  // the holder's, in ticks
  LeasePolicy policy_;                                        // the holder's

  const uint64_t most_deferred_, silence_;  // ticks
  core::Spinlock look_lock_;                // order: before the engine's lock of watches
  LookPlan plan_;                           // set under look_lock_
  std::atomic<uint64_t> posted_at_{0};      // in ticks
};

}  // namespace uiw::progress
