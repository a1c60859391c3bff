// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Completions that small messages bring one behind the other, added to their queue together: its
// lock, taken for each, makes the processor wait for all that was stored before.
#pragma once

#include <array>
#include <cstddef>

#include "queue/completion_queue.h"

namespace uiw::queue {

// Thread: one. Holds few, and whoever adds them flushes before anything that takes long.
class CompletionBatch {
 public:
  explicit CompletionBatch(CompletionQueue& queue) : queue_(queue) {}
  ~CompletionBatch() { flush(); }
  CompletionBatch(const CompletionBatch&) = delete;
  CompletionBatch& operator=(const CompletionBatch&) = delete;

  // As CompletionQueue::push(), later.
  void add(const Completion& completion, bool solicited) {
    if (count_ == held_.size()) flush();
    held_[count_++] = completion;
    solicited_ = solicited_ || solicited;
  }
  void flush() {
    if (count_ == 0) return;
    queue_.push_all({held_.data(), count_}, solicited_);
    count_ = 0;
    solicited_ = false;
  }

 private:
  CompletionQueue& queue_;
  size_t count_ = 0;
  bool solicited_ = false;
  std::array<Completion, 8> held_;
};

}  // namespace uiw::queue
