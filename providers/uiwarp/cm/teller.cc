// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/teller.h"

#include <utility>

namespace uiw::cm {

void Teller::queued(Channel& channel, engine::Engine* engine) {
  if (channel.told) return;
  if (engine == nullptr || !engine->on_engine_thread()) {
    channel.told = true;
    channel.sink->tell();
    return;
  }
  if (std::exchange(channel.to_be_told, true)) return;
  untold_.append(channel);
  if (!std::exchange(posted_, true)) engine->post(*this);
}

void Teller::taken(Channel& channel) {
  if (!channel.events.empty() || !std::exchange(channel.told, false)) return;
  for (;;) {
    // Asked before: if the engine had told by then, there is something to take back.
    const bool telling = telling_.load(std::memory_order_acquire) == &channel;
    if (channel.sink->take_back() || !telling) return;
    telling_.wait(&channel, std::memory_order_acquire);
  }
}

void Teller::leave(Channel& channel, std::unique_lock<std::mutex>& hold) {
  if (std::exchange(channel.to_be_told, false)) untold_.remove(channel);
  hold.unlock();
  telling_.wait(&channel, std::memory_order_acquire);
  hold.lock();
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
    telling_.store(channel, std::memory_order_relaxed);
    hold.unlock();
    channel->sink->tell();
    telling_.store(nullptr, std::memory_order_release);
    telling_.notify_all();
    hold.lock();
  }
}

}  // namespace uiw::cm
