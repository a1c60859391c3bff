// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A completion queue, where its events go, and the queue pairs that die with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "counters/file.h"
#include "queue/completion_queue.h"
#include "verbs/context.h"
#include "verbs/users.h"

namespace uiw::verbs {

// A queue pair, as its completion queue knows it.
struct CqMember {
  // The queue has lost a completion. Called once, with the queue's list locked: must only leave a
  // note.
  virtual void on_cq_error() = 0;

  // The queue's, under its lock.
  CqMember *next = nullptr, *previous = nullptr;

 protected:
  ~CqMember() = default;
};

}  // namespace uiw::verbs

struct uiwarp_cq final : uiw::queue::CompletionEvents {
  explicit uiwarp_cq(const uiwarp_context& of)
      : counters(uiw::counters::Kind::kCompletionQueue, of.device->name, 0) {}

  uiwarp_context* context = nullptr;
  uiwarp_pd* parent_domain = nullptr;  // null: none was given
  // Shared with queue pairs for which pollers of it receive (progress/busy_poller.h).
  std::shared_ptr<uiw::queue::CompletionQueue> queue;
  uiw::verbs::CompletionChannel* channel = nullptr;  // null: no completion events
  uiw::verbs::EventSource events, errors;            // of the channel, async: named as the ibv_cq
  uint32_t vector = 0;                               // names an engine: verbs/affinity.h
  std::atomic<bool> counts_as_load{false};           // counts among those of its engine
  uiw::verbs::Users users;                           // queue pairs
  std::atomic<uint32_t> completion_events{0}, async_events{0};  // sent since creation
  std::atomic<uint32_t> entries{0};                             // its capacity
  uiw::core::Told told;
  uiw::counters::Lent counters;

  void on_completion_event() override;
  void on_overflow() override;
  void on_spinning() override { context->busy_poller.offer(queue); }

  // False when the queue has already lost a completion: it takes no more queue pairs. Thread: any.
  bool join(uiw::verbs::CqMember& member);
  // When it returns, `member` is not told any more. Thread: any.
  void leave(uiw::verbs::CqMember& member);

 private:
  std::mutex mutex_;
  uiw::verbs::CqMember* members_ = nullptr;  // under mutex_, as all links and failed_
  bool failed_ = false;
};
