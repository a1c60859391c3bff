// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells a process that it is a fork of the one that started the engine. Neither the thread nor the
// ring exist there, so whoever would wait for the engine would wait forever.
#pragma once

#include <atomic>

namespace uiw::engine {

// One word on a page that the kernel clears in every child (MADV_WIPEONFORK), however it was made:
// unlike a pthread_atfork handler it costs nothing at fork, unlike getpid() nothing to ask.
class ForkMark {
 public:
  ForkMark() = default;
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  // 0 or errno. Again after it succeeded: marks this process as the owner. Not thread-safe.
  int set();
  // Whether this process is a child of the one that called set(). False before any set().
  bool in_child() const { return page_ && page_->load(std::memory_order_relaxed) == 0; }

 private:
  std::atomic<int>* page_ = nullptr;
};

}  // namespace uiw::engine
