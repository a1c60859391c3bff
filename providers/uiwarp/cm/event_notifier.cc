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
  if (engine == nullptr || !engine->on_engine_thread()) {
    withdraw(channel);
    mark(channel);
    channel.sink->notify();
    return;
  }
  if (std::exchange(channel.notification_pending, true)) return;
  if (channel.notified == Channel::Notified::kNever) draw_lateness(channel, *engine);
  pending_.append(channel);
  engine_ = engine;
  if (!std::exchange(posted_, true)) engine->post(*this);
}

// Events that can be fetched already must not be hidden again, so only the first notification is
// delayed.
void EventNotifier::draw_lateness(Channel& channel, const engine::Engine& engine) {
  const auto drawn =
      core::shaken(core::Shaken::kEvents, channel.number, channel.notifications_drawn++);
  if (const core::Nanoseconds late = drawn ? lateness_of(*drawn) : 0)
    channel.due = engine.now() + late;
}

void EventNotifier::mark(Channel& channel) {
  using enum Channel::Notified;
  channel.due = 0;
  channel.notified = channel.notified == kNever ? kOnce : kAgain;
}

void EventNotifier::withdraw(Channel& channel) {
  if (std::exchange(channel.notification_pending, false)) pending_.remove(channel);
}

void EventNotifier::taken(Channel& channel) {
  using enum Channel::Notified;
  if (!channel.events.empty()) return;
  const Channel::Notified notified = std::exchange(channel.notified, kNever);
  if (notified == kNever) return;
  for (;;) {
    // Read before clear(): if the engine had left notify() by then, there is something to clear.
    const bool notifying = notifying_.load(std::memory_order_acquire) == &channel;
    const bool cleared = channel.sink->clear();
    if (!notifying) return;
    // With one notification, what was cleared was the engine's. With several, the engine's may
    // still come.
    if (cleared && notified == kOnce) return;
    notifying_.wait(&channel, std::memory_order_acquire);
  }
}

void EventNotifier::leave(Channel& channel, std::unique_lock<std::mutex>& hold) {
  withdraw(channel);
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

// Posted in one turn of the engine, it runs in the next, before the engine sleeps; or later, by the
// timer.
void EventNotifier::run() {
  std::unique_lock hold(lock_);
  posted_ = false;
  while (Channel* channel = first_due(engine_->now())) {
    withdraw(*channel);
    if (channel->events.empty()) {
      channel->due = 0;
      continue;
    }
    mark(*channel);
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
