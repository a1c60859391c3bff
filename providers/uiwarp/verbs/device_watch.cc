// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/device_watch.h"

#include <cstring>
#include <mutex>

#include "core/log.h"
#include "core/per_process.h"
#include "device/device.h"

namespace uiw::verbs {
namespace {

class Watch final : engine::Op {
 public:
  std::mutex mutex;    // held during begin() and end(), which must not overlap
  uint32_t users = 0;  // under mutex

  void begin(engine::Engine& engine) {
    if (const int error = device::start_watching(fd_)) {
      core::log(core::LogLevel::kInfo,
                "cannot follow the network interfaces (netlink: %s): RDMA devices stay as found",
                strerrordesc_np(error));
      fd_ = -1;
      return;
    }
    engine_ = &engine;
    engine.run_sync([this] { engine_->poll_readable(*this, fd_); });
  }

  void end(engine::Engine& engine) {
    if (fd_ < 0) return;
    ending_ = true;
    for (bool waits = true; waits;) {
      engine.run_sync([&] {
        if (in_flight()) engine.cancel(*this);
        waits = in_flight();
      });
    }
    ending_ = false;
    fd_ = -1;
    device::stop_watching();
  }

 private:
  void complete(int result, core::Bytes) override {
    // An error: the program has closed our descriptor. That ends the watch.
    if (ending_ || result < 0) return;
    device::refresh();
    engine_->poll_readable(*this, fd_);
  }

  engine::Engine* engine_ = nullptr;
  int fd_ = -1;
  std::atomic<bool> ending_{false};
};

// A fork's child does not use the parent's watch.
constinit core::PerProcess<Watch> g_watch;

}  // namespace

void follow_interfaces(engine::Engine& engine) {
  Watch* const watch = g_watch.get();
  if (!watch) return;
  const std::lock_guard lock(watch->mutex);
  if (++watch->users == 1) watch->begin(engine);
}

void leave_interfaces(engine::Engine& engine) {
  Watch* const watch = g_watch.get();
  if (!watch || engine.in_child()) return;
  const std::lock_guard lock(watch->mutex);
  if (--watch->users == 0) watch->end(engine);
}

}  // namespace uiw::verbs
