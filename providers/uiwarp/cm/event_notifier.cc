// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/event_notifier.h"

#include <algorithm>
#include <utility>

#include "cm/lateness.h"
#include "core/shaken.h"

namespace uiw::cm {

void EventNotifier::opened(Channel& channel) {
  channel.number = ++opened_;
}

void EventNotifier::queued(Channel& channel, engine::Engine* engine) {
  if (channel.notified) return;
  if (engine == nullptr || !engine->on_engine_thread()) {
    channel.notified = true;
    channel.due = 0;
    channel.sink->notify();
    return;
  }
  if (std::exchange(channel.notification_pending, true)) return;
  const auto drawn =
      core::shaken(core::Shaken::kEvents, channel.number, channel.notifications_drawn++);
  if (const core::Nanoseconds late = drawn ? lateness_of(*drawn) : 0)
    channel.due = engine->now() + late;
  pending_.append(channel);
  engine_ = engine;
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

void EventNotifier::engine_goes(engine::Engine& engine) {
  const std::lock_guard hold(lock_);
  if (!pending_.first()) engine.disarm(later_);
}

Channel* EventNotifier::first_due(core::Nanoseconds now) {
  Channel* channel = pending_.first();
  while (channel && channel->due > now) channel = pending_.next(*channel);
  return channel;
}

// Posted by a turn of the engine, so this is the next one, before it sleeps; or later, by the
// timer.
void EventNotifier::run() {
  std::unique_lock hold(lock_);
  posted_ = false;
  while (Channel* channel = first_due(engine_->now())) {
    pending_.remove(*channel);
    channel->notification_pending = false;
    channel->due = 0;
    if (channel->notified || channel->events.empty()) continue;
    channel->notified = true;
    notifying_.store(channel, std::memory_order_relaxed);
    hold.unlock();
    channel->sink->notify();
    notifying_.store(nullptr, std::memory_order_release);
    notifying_.notify_all();
    hold.lock();
  }
  const Channel* const waiting = pending_.first();
  if (!waiting) return;
  core::Nanoseconds next = waiting->due;
  for (const Channel* each = waiting; each; each = pending_.next(*each))
    next = std::min(next, each->due);
  engine_->arm(later_, next - engine_->now());
}

}  // namespace uiw::cm
