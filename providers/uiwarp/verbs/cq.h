// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A completion queue, the destinations of its events, and the queue pairs that fail with it.
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

// The interface of a queue pair to its completion queue.
struct CqMember {
  // The queue has lost a completion. Called once, with the queue's list locked, so it must only
  // leave a note.
  virtual void on_cq_error() = 0;

  // Used by the queue, under its lock.
  CqMember *next = nullptr, *previous = nullptr;

 protected:
  ~CqMember() = default;
};

}  // namespace uiw::verbs

struct uiwarp_cq final : uiw::queue::CompletionEvents {
  explicit uiwarp_cq(const uiwarp_context& of)
      : counters(uiw::counters::Kind::kCompletionQueue, of.device->name, 0) {}

  uiwarp_context* context = nullptr;
  uiwarp_pd* parent_domain = nullptr;  // null: created without one
  // Shared with queue pairs for which its pollers receive (progress/busy_poller.h).
  std::shared_ptr<uiw::queue::CompletionQueue> queue;
  uiw::verbs::CompletionChannel* channel = nullptr;  // null: no completion events
  uiw::verbs::EventSource events, errors;            // on the channel; async. Both carry the ibv_cq
  uint32_t vector = 0;                               // names an engine: verbs/affinity.h
  std::atomic<bool> counts_as_load{false};           // counted in the load of its engine
  uiw::verbs::Users users;                           // queue pairs
  std::atomic<uint32_t> completion_events{0}, async_events{0};  // sent since creation
  std::atomic<uint32_t> entries{0};                             // its capacity
  uiw::core::Told told;
  uiw::counters::Lent counters;

  void on_completion_event() override;
  void on_overflow() override;
  void on_spinning() override { context->busy_poller.offer(queue); }

  // False when the queue has lost a completion already: it accepts no more queue pairs. Thread:
  // any.
  bool join(uiw::verbs::CqMember& member);
  // When this returns, `member` is not called any more. Thread: any.
  void leave(uiw::verbs::CqMember& member);

 private:
  std::mutex mutex_;
  uiw::verbs::CqMember* members_ = nullptr;  // under mutex_, as all links and failed_
  bool failed_ = false;
};
