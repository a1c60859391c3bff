// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair whose request is to fail goes to ERR when its stand-in has completed, whether or not
// the program polls: it may be waiting for its receives to flush. A thread looks, which there is as
// soon as a rule needs it.
#include <pthread.h>

#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <utility>

#include "core/last_thread.h"
#include "core/log.h"
#include "core/no_signals.h"
#include "core/per_process.h"
#include "core/tuning.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

bool has_failing(Cq& cq) {
  for (const auto& [number, qp] : cq.qps) {
    const std::lock_guard lock(qp->mutex);
    if (qp->fate == Fate::kFailing || qp->fate == Fate::kFailed) return true;
  }
  return false;
}

// Whether one is left that is to go to ERR. cq.mutex is held.
bool look(Cq& cq, Notes& notes) {
  if (cq.is_destroyed) return false;
  take_completions(cq, notes);
  return has_failing(cq);
}

bool look_again(Cq& cq) {
  Notes notes;
  const std::lock_guard lock(cq.mutex);
  cq.is_watched = look(cq, notes);
  return cq.is_watched;
}

struct Watcher {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<std::shared_ptr<Cq>> queues;  // under mutex
  bool has_thread = false;                  // under mutex

  [[noreturn]] void run() {
    for (std::vector<std::shared_ptr<Cq>> mine;;) {
      {
        std::unique_lock lock(mutex);
        if (mine.empty()) more.wait(lock, [&] { return !queues.empty(); });
        for (auto& cq : std::exchange(queues, {})) mine.push_back(std::move(cq));
      }
      std::erase_if(mine, [](const std::shared_ptr<Cq>& cq) { return !look_again(*cq); });
      constexpr timespec kPause{0, core::tuning::kFailingQueueLook};
      if (!mine.empty()) nanosleep(&kPause, nullptr);
    }
  }

  static void* main(void* self) {
    pthread_setname_np(pthread_self(), core::kFaultsThread);
    static_cast<Watcher*>(self)->run();
  }

  int start() {
    const core::NoSignals none;
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, main, this);
    if (!error) pthread_detach(thread);
    return error;
  }
};

}  // namespace

void watch(const std::shared_ptr<Cq>& cq) {
  {
    Notes notes;
    const std::lock_guard lock(cq->mutex);
    // Most often that is all there is to do.
    if (!look(*cq, notes) || cq->is_watched) return;
    cq->is_watched = true;
  }
  static constinit core::PerProcess<Watcher> watchers;
  Watcher* const watcher = watchers.get();
  if (!watcher) return;
  const std::lock_guard lock(watcher->mutex);
  if (!watcher->has_thread) {
    if (const int error = watcher->start()) {
      core::log(core::LogLevel::kWarn,
                "faults: no thread can be made (errno %d): a queue pair that fails by a rule goes "
                "to ERR when its completion queue is polled",
                error);
      return;
    }
    watcher->has_thread = true;
  }
  watcher->queues.push_back(cq);
  watcher->more.notify_one();
}

}  // namespace uiw::faults
