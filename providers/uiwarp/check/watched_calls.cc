// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/watched_calls.h"

#include <dlfcn.h>

#include "check/one_end.h"
#include "check/unmapping.h"
#include "uiwarp/uiwarp-watch.h"

namespace uiw::check {
namespace {

constexpr uiwarp_watcher kWatcher = {.unmapping = unmapping, .exiting = wait_unless_first};

}  // namespace

void watch_calls() {
  void* const found = dlsym(RTLD_DEFAULT, "uiwarp_preload_watch");
  if (found) reinterpret_cast<uiwarp_preload_watch_function*>(found)(&kWatcher);
}

}  // namespace uiw::check
