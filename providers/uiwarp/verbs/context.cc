// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/context.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "core/explain.h"
#include "core/last_thread.h"
#include "core/log.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "rendezvous/ports.h"
#include "verbs/affinity.h"
#include "verbs/device_events.h"
#include "verbs/device_watch.h"
#include "verbs/open_contexts.h"

using namespace uiw;

namespace {

std::atomic<uint32_t> contexts{0};

// Returns `error`, and logs it: most programs only say that the device cannot be opened.
int cannot_open(const uiwarp_device* device, int error) {
  static constinit core::Told told;
  return core::refuse(told, error, "ibv_open_device: %s cannot be opened: %s%s",
                      verbs::from_c(device)->name.c_str(), strerrordesc_np(error),
                      error == EMFILE ? ": raise the limit of descriptors (ulimit -n)" : "");
}

}  // namespace

uint32_t verbs::open_contexts() {
  return contexts.load(std::memory_order_relaxed);
}

const uiwarp_device* uiwarp_device_find(const char* ibdev_name) {
  return verbs::to_c(device::find_by_name(ibdev_name));
}

int uiwarp_context_open(const uiwarp_device* device, uint64_t command, uiwarp_context** context,
                        int* async_fd) {
  if (!device) return ENODEV;
  if (const int error = core::settings_error()) return error;
  std::shared_ptr<verbs::CommandSpace> space = verbs::command_space(command);
  if (!space) return ENOMEM;
  std::unique_ptr<uiwarp_context> opened(
      new (std::nothrow) uiwarp_context(verbs::from_c(device), std::move(space)));
  if (!opened) return ENOMEM;
  auto engine = engine::EngineRef::acquire();
  if (!engine) return cannot_open(device, engine.error());
  opened->engine = std::move(*engine);
  core::end_with_last_thread();
  if (const int error = opened->async.create(async_fd)) return cannot_open(device, error);
  verbs::follow_interfaces(*opened->engine);
  device::subscribe(*opened);
  *context = opened.release();
  contexts.fetch_add(1, std::memory_order_relaxed);
  core::log(core::LogLevel::kDebug, "device %s: opened", (*context)->device->name.c_str());
  // If the device goes later than this check, an event reports it.
  if (!device::state_of(*verbs::from_c(device)).gone) return 0;
  uiwarp_context_close(*context);
  core::sys::close(*async_fd);
  return ENODEV;
}

void uiwarp_context::device_changed(const device::Device& changed, device::Change change) {
  if (&changed != device) return;
  const auto event = std::ranges::find(verbs::kDeviceEvents, change, &verbs::DeviceEvent::change);
  async.send(event->is_of_port ? port_events : device_events, event->type);
}

void uiwarp_context_close(uiwarp_context* context) {
  device::unsubscribe(*context);
  verbs::leave_interfaces(*context->engine);
  if (context->in_child()) return;
  const uint32_t left = context->pds.used() + context->tds.used() + context->mrs.used() +
                        context->mws.used() + context->ahs.used() + context->cqs.used() +
                        context->srqs.used() + context->qps.used();
  if (left > 0 && core::settings().checked()) return;  // the finding of --check lists them
  if (left > 0) {
    // ibv_close_device's manual page makes this the application's duty. The engine may still use
    // the objects, so the context is leaked rather than freed under the engine.
    core::log(
        core::LogLevel::kWarn,
        "ibv_close_device(%s) with %u objects left: destroy queue pairs, queues, address "
        "handles, memory windows and regions, and domains first; their memory is not released",
        context->device->name.c_str(), left);
    return;
  }
  core::log(core::LogLevel::kDebug, "device %s: closed", context->device->name.c_str());
  delete context;
  contexts.fetch_sub(1, std::memory_order_relaxed);
  rendezvous::close_idle_ports();
}

int uiwarp_comp_vectors() {
  return static_cast<int>(verbs::engine_count());
}

void uiwarp_context_events_taken(uiwarp_context* context, int) {
  if (context->backlog.load(std::memory_order_seq_cst) == 0) return;
  if (context->in_child()) return;
  context->async.flush();
  context->channels.flush();
}
