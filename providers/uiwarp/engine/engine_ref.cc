// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engines that are shared by the whole process.
#include <pthread.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/per_process.h"
#include "core/settings.h"
#include "engine/engine.h"

namespace uiw::engine {
namespace {

struct Shared {
  // Held while engines start and stop: a concurrent acquire() waits for the outcome.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::array<Engine*, core::Settings::kMostEngines> engines{};  // guarded by mutex
  unsigned references = 0;                                      // guarded by mutex
};
// After fork() the child has a copy of the parent's object, whose mutex may be held by a thread
// that does not exist there. So the child does not use it and gets an object of its own.
constinit core::PerProcess<Shared> g_shared;

// The mutex must be held.
core::Result<Engine*> started(Engine*& engine) {
  if (engine) return engine;
  auto fresh = Engine::start();
  if (!fresh) return core::Errno{fresh.error()};
  return engine = fresh->release();
}

}  // namespace

core::Result<EngineRef> EngineRef::acquire() {
  Shared* const process = g_shared.get();
  if (!process) return core::Errno{ENOMEM};
  pthread_mutex_lock(&process->mutex);
  core::Result<Engine*> first = started(process->engines[0]);
  if (first) ++process->references;
  pthread_mutex_unlock(&process->mutex);
  if (!first) return core::Errno{first.error()};
  EngineRef reference;
  reference.engine_ = *first;
  return reference;
}

core::Result<Engine*> EngineRef::at(unsigned index) const {
  if (index == 0) return engine_;
  if (engine_->in_child()) return core::Errno{ENODEV};
  Shared* const process = g_shared.get();
  pthread_mutex_lock(&process->mutex);
  core::Result<Engine*> engine = started(process->engines[index]);
  pthread_mutex_unlock(&process->mutex);
  return engine;
}

EngineRef::EngineRef(EngineRef&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}

EngineRef& EngineRef::operator=(EngineRef&& other) noexcept {
  if (this != &other) {
    EngineRef old(std::move(*this));
    engine_ = std::exchange(other.engine_, nullptr);
  }
  return *this;
}

EngineRef::~EngineRef() {
  // A reference taken by the parent is counted in the parent.
  if (!engine_ || engine_->in_child()) return;
  Shared* const process = g_shared.get();
  pthread_mutex_lock(&process->mutex);
  if (--process->references == 0) {
    for (Engine*& engine : process->engines) delete std::exchange(engine, nullptr);
  }
  pthread_mutex_unlock(&process->mutex);
}

}  // namespace uiw::engine
