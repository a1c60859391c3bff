// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/teller.h"

#include <sched.h>

#include <utility>

namespace uiw::cm {

void Teller::queued(Channel& channel, engine::Engine* engine) {
  if (channel.told || channel.to_be_told) return;
  if (engine == nullptr || !engine->on_engine_thread()) {
    channel.told = true;
    channel.sink->tell();
    return;
  }
  channel.to_be_told = true;
  untold_.append(channel);
  if (!std::exchange(posted_, true)) engine->post(*this);
}

void Teller::taken(Channel& channel) {
  if (!channel.events.empty() || !std::exchange(channel.told, false)) return;
  for (;;) {
    // Asked before: if the engine had told by then, there is something to take back.
    const bool telling = channel.telling.load(std::memory_order_acquire);
    if (channel.sink->take_back() || !telling) return;
    sched_yield();
  }
}

void Teller::leave(Channel& channel, std::unique_lock<std::mutex>& hold) {
  if (std::exchange(channel.to_be_told, false)) untold_.remove(channel);
  while (channel.telling.load(std::memory_order_acquire)) {
    hold.unlock();
    sched_yield();
    hold.lock();
  }
}

// Posted by a turn of the engine, so this is the next one, before it sleeps.
void Teller::run() {
  std::unique_lock hold(lock_);
  posted_ = false;
  while (Channel* channel = untold_.first()) {
    untold_.remove(*channel);
    channel->to_be_told = false;
    if (channel->told || channel->events.empty()) continue;
    channel->told = true;
    channel->telling.store(true, std::memory_order_relaxed);
    hold.unlock();
    channel->sink->tell();
    channel->telling.store(false, std::memory_order_release);
    hold.lock();
  }
}

}  // namespace uiw::cm
