// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/own_thread.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <new>

#include "core/no_signals.h"

namespace uiw::core {
namespace {

// Indexed by OwnThread.
constexpr const char* kNames[] = {"uiwarp", "uiwarp-check", "uiwarp-faults", "uiwarp-last"};

struct Start {
  OwnThread which;
  void (*run)(void*);
  void* argument;
};

void* begin(void* given) {
  const Start start = *std::unique_ptr<Start>(static_cast<Start*>(given));
  pthread_setname_np(pthread_self(), kNames[static_cast<size_t>(start.which)]);
  start.run(start.argument);
  return nullptr;
}

}  // namespace

int start_thread(OwnThread which, void (*run)(void*), void* argument, pthread_t* thread) {
  std::unique_ptr<Start> start(new (std::nothrow) Start{which, run, argument});
  if (!start) return ENOMEM;
  const NoSignals none;
  pthread_t made;
  if (const int error = pthread_create(&made, nullptr, begin, start.get())) return error;
  static_cast<void>(start.release());  // owned by begin()
  if (thread)
    *thread = made;
  else
    pthread_detach(made);
  return 0;
}

bool is_own_thread(std::string_view name) {
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace uiw::core
