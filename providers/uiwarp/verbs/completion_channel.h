// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The completion channels of one context, identified by the descriptor that libibverbs created them
// with; several CQs may share one. That descriptor cannot change while a CQ uses it
// (ibv_destroy_comp_channel returns EBUSY).
#pragma once

#include <atomic>
#include <mutex>

#include "core/result.h"
#include "verbs/event_pipe.h"

namespace uiw::verbs {

struct CompletionChannel {
  CompletionChannel(int channel_fd, std::atomic<uint32_t>& backlog)
      : fd(channel_fd), pipe(kCompletionRecord, backlog) {}
  const int fd;
  EventPipe pipe;
  uint32_t users = 0;  // under the table's mutex
  CompletionChannel* next = nullptr;
};

class ChannelTable {
 public:
  explicit ChannelTable(std::atomic<uint32_t>& backlog) : backlog_(backlog) {}
  ~ChannelTable();

  // Errors: those of EventPipe::join, ENOMEM. Thread: any.
  core::Result<CompletionChannel*> acquire(int fd);
  void release(CompletionChannel* channel);
  void flush();

 private:
  std::atomic<uint32_t>& backlog_;
  std::mutex mutex_;
  CompletionChannel* first_ = nullptr;
};

}  // namespace uiw::verbs
