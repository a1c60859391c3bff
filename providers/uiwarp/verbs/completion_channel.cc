// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/completion_channel.h"

#include <cerrno>
#include <memory>
#include <new>

namespace uiw::verbs {

ChannelTable::~ChannelTable() {
  while (first_) {
    CompletionChannel* next = first_->next;
    delete first_;
    first_ = next;
  }
}

core::Result<CompletionChannel*> ChannelTable::acquire(int fd) {
  const std::lock_guard lock(mutex_);
  for (CompletionChannel* channel = first_; channel; channel = channel->next) {
    if (channel->fd == fd) {
      ++channel->users;
      return channel;
    }
  }
  std::unique_ptr<CompletionChannel> channel(new (std::nothrow) CompletionChannel(fd, backlog_));
  if (!channel) return core::Errno{ENOMEM};
  if (const int error = channel->pipe.join(fd)) return core::Errno{error};
  channel->users = 1;
  channel->next = first_;
  return first_ = channel.release();
}

void ChannelTable::release(CompletionChannel* channel) {
  const std::lock_guard lock(mutex_);
  if (--channel->users > 0) return;
  CompletionChannel** link = &first_;
  while (*link != channel) link = &(*link)->next;
  *link = channel->next;
  delete channel;
}

void ChannelTable::flush() {
  const std::lock_guard lock(mutex_);
  for (CompletionChannel* channel = first_; channel; channel = channel->next) channel->pipe.flush();
}

}  // namespace uiw::verbs
