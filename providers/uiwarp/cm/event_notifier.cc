// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/event_notifier.h"

#include <utility>

namespace uiw::cm {

void EventNotifier::queued(Channel& channel, engine::Engine* engine) {
  if (channel.notified) return;
  if (engine == nullptr || !engine->on_engine_thread()) {
    channel.notified = true;
    channel.sink->notify();
    return;
  }
  if (std::exchange(channel.notification_pending, true)) return;
  pending_.append(channel);
  if (!std::exchange(posted_, true)) engine->post(*this);
}

void EventNotifier::taken(Channel& channel) {
  if (!channel.events.empty() || !std::exchange(channel.notified, false)) return;
  for (;;) {
    // Read before clear(): if the engine was out of notify() by then, there is something to clear.
    const bool notifying = notifying_.load(std::memory_order_acquire) == &channel;
    if (channel.sink->clear() || !notifying) return;
    notifying_.wait(&channel, std::memory_order_acquire);
  }
}

void EventNotifier::leave(Channel& channel, std::unique_lock<std::mutex>& hold) {
  if (std::exchange(channel.notification_pending, false)) pending_.remove(channel);
  hold.unlock();
  notifying_.wait(&channel, std::memory_order_acquire);
  hold.lock();
}

// Posted by a turn of the engine, so this is the next one, before it sleeps.
void EventNotifier::run() {
  std::unique_lock hold(lock_);
  posted_ = false;
  while (Channel* channel = pending_.first()) {
    pending_.remove(*channel);
    channel->notification_pending = false;
    if (channel->notified || channel->events.empty()) continue;
    channel->notified = true;
    notifying_.store(channel, std::memory_order_relaxed);
    hold.unlock();
    channel->sink->notify();
    notifying_.store(nullptr, std::memory_order_release);
    notifying_.notify_all();
    hold.lock();
  }
}

}  // namespace uiw::cm
