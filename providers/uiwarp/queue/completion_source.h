// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Identifies the origin of a completion, and frees work queue places when it is polled.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "core/list.h"

namespace uiw::queue {

// The send or receive side of one queue pair. A work request keeps its place in the work queue
// until its completion, or a later one of the same queue, was polled. Drivers of adapters do the
// same (mlx4, mlx5, irdma move the tail of the work queue in ibv_poll_cq). This bounds the number
// of waiting completions.
class CompletionSource {
 public:
  enum class Kind : uint8_t {
    kOwnQueue,     // completions come in posting order; each frees all places up to its own
    kSharedQueue,  // other queue pairs complete for it too, in any order; each frees one place
    kGone,         // purged; frees nothing, and its remaining entries are dropped when polls reach
                   // them
  };

  // `freed` counts the places freed since the work queue was made. It must live until
  // CompletionQueue::purge() has taken this source.
  CompletionSource(Kind kind, std::atomic<uint64_t>& freed) : kind_(kind), freed_(&freed) {}

  // For the owner, until it is purged.
  bool is_of_shared_queue() const { return kind_ == Kind::kSharedQueue; }

 private:
  friend class CompletionQueue;

  void free(uint32_t count, uint64_t frees) {
    if (kind_ == Kind::kOwnQueue)
      freed_->store(frees, std::memory_order_release);
    else if (kind_ == Kind::kSharedQueue)
      freed_->fetch_add(count, std::memory_order_release);
  }
  // A completion found no room in the completion queue. The place in a shared queue is freed, as
  // other queue pairs go on.
  void lose() {
    if (kind_ == Kind::kSharedQueue) free(1, 0);
  }
  bool gone() const { return kind_ == Kind::kGone; }
  uint32_t waiting() const { return pushed_ - passed_; }

  Kind kind_;                     // changes to kGone under both locks of the completion queue
  bool hushed_ = false;           // under produce_ of the completion queue
  uint32_t pushed_ = 0;           // modulo 2^32, under its produce_
  uint32_t passed_ = 0;           // polled or dropped ones; the same, under consume_
  std::atomic<uint64_t>* freed_;  // must not be used once gone
  core::ListLink<CompletionSource> among_gone_;
};

// Both sources of a queue pair. `shared`: it takes its receives from a shared queue. Both null when
// out of memory.
struct CompletionSources {
  std::unique_ptr<CompletionSource> sends, receives;
  explicit operator bool() const { return receives != nullptr; }
};
inline CompletionSources make_sources(std::atomic<uint64_t>& sends_freed,
                                      std::atomic<uint64_t>& receives_freed, bool shared) {
  using Kind = CompletionSource::Kind;
  const auto make = [](Kind kind, std::atomic<uint64_t>& freed) {
    return std::unique_ptr<CompletionSource>(new (std::nothrow) CompletionSource(kind, freed));
  };
  CompletionSources made{make(Kind::kOwnQueue, sends_freed),
                         make(shared ? Kind::kSharedQueue : Kind::kOwnQueue, receives_freed)};
  return made.sends && made.receives ? std::move(made) : CompletionSources{};
}

// One entry of a completion queue, in one cache line.
struct Completion {
  ibv_wc wc;
  CompletionSource* source;
  uint64_t frees;  // kOwnQueue: value for `freed` when this is polled
};
static_assert(sizeof(Completion) == 64);

}  // namespace uiw::queue
