// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/later.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "core/last_thread.h"
#include "core/log.h"
#include "core/no_signals.h"
#include "core/per_process.h"

namespace uiw::faults {
namespace {

struct Later {
  std::mutex mutex;
  std::condition_variable changed;
  std::multimap<core::Nanoseconds, std::function<void()>> list;  // under mutex
  bool has_thread = false;                                       // under mutex

  [[noreturn]] void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      if (list.empty()) {
        changed.wait(lock);
        continue;
      }
      const core::Nanoseconds left = list.begin()->first - core::now();
      if (left > 0) {
        changed.wait_for(lock, std::chrono::nanoseconds(left));
        continue;
      }
      const std::function<void()> what = std::move(list.begin()->second);
      list.erase(list.begin());
      lock.unlock();
      what();
      lock.lock();
    }
  }

  static void* main(void* self) {
    pthread_setname_np(pthread_self(), core::kFaultsThread);
    static_cast<Later*>(self)->run();
  }

  // Under mutex.
  int start() {
    const core::NoSignals none;
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, main, this);
    if (!error) pthread_detach(thread);
    return error;
  }
};

}  // namespace

bool later(core::Nanoseconds when, std::function<void()> what) {
  static constinit core::PerProcess<Later> all;
  Later* const mine = all.get();
  if (!mine) return false;
  const std::lock_guard lock(mine->mutex);
  if (!mine->has_thread) {
    if (const int error = mine->start()) {
      core::log(core::LogLevel::kWarn,
                "faults: no thread can be made (errno %d): what is to happen at a time does not",
                error);
      return false;
    }
    mine->has_thread = true;
  }
  mine->list.emplace(when, std::move(what));
  mine->changed.notify_one();
  return true;
}

}  // namespace uiw::faults
