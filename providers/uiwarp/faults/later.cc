// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/later.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "core/log.h"
#include "core/own_thread.h"
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

  static void main(void* self) { static_cast<Later*>(self)->run(); }
};

}  // namespace

bool later(core::Nanoseconds when, std::function<void()> what) {
  static constinit core::PerProcess<Later> all;
  Later* const mine = all.get();
  if (!mine) return false;
  const std::lock_guard lock(mine->mutex);
  if (!mine->has_thread) {
    if (const int error = core::start_thread(core::OwnThread::kFaults, Later::main, mine)) {
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
