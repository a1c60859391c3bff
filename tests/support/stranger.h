// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Completes in whatever completion queue a test likes, without a queue pair.
#pragma once

#include "queue/completion_source.h"

namespace uiw::test {

// Of one completion queue; lives until what it completed was polled.
class Stranger {
 public:
  queue::Completion completion(const ibv_wc& wc = {}) { return {wc, &source_, ++completed_}; }
  uint64_t freed() const { return freed_.load(); }

 private:
  std::atomic<uint64_t> freed_{0};
  queue::CompletionSource source_{queue::CompletionSource::Kind::kOwnQueue, freed_};
  uint64_t completed_ = 0;
};

}  // namespace uiw::test
