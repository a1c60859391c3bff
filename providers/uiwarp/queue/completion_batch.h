// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Collects the completions of consecutive small messages and adds them to their queue together.
// Taking the queue's lock for each would make the processor wait for all earlier stores.
#pragma once

#include <array>
#include <cstddef>

#include "queue/completion_queue.h"

namespace uiw::queue {

// Holds few completions. The user flushes it before anything that takes long. Thread: one.
class CompletionBatch {
 public:
  explicit CompletionBatch(CompletionQueue& queue) : queue_(queue) {}
  ~CompletionBatch() { flush(); }
  CompletionBatch(const CompletionBatch&) = delete;
  CompletionBatch& operator=(const CompletionBatch&) = delete;

  // Like CompletionQueue::push(), but takes effect at flush().
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
