// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/affinity.h"

#include <algorithm>
#include <atomic>

#include "core/processors.h"
#include "core/settings.h"

namespace uiw::verbs {
namespace {

// No more engines than this by default: each is a thread with its own buffers.
constexpr uint32_t kMostUnasked = 8;

constinit std::atomic<uint32_t> g_fitting{0};  // 0: not computed yet

// Half of the processors are for engines; the program's own threads need some, too.
uint32_t fitting_engines() {
  return std::clamp(static_cast<uint32_t>(core::processors()) / 2, 1u, kMostUnasked);
}

core::Result<engine::Engine*> choose(const engine::EngineRef& engines, uint32_t vector) {
  if (vector > 0) return engines.at(vector);
  engine::Engine* least = nullptr;
  for (uint32_t i = 0; i < engine_count(); ++i) {
    core::Result<engine::Engine*> engine = engines.at(i);
    if (!engine) return least ? least : engine;
    if (!least || (*engine)->load() < least->load()) least = *engine;
    if (least->load() == 0) break;  // looking at the next one would start it
  }
  return least;
}

void set_affinity(uiwarp_cq& cq, engine::Engine& engine) {
  if (!cq.queue->set_affinity(engine) || cq.counts_as_load.exchange(true)) return;
  engine.load().fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

uint32_t engine_count() {
  if (core::settings().engines > 0) return core::settings().engines;
  uint32_t count = g_fitting.load(std::memory_order_relaxed);
  if (count == 0) {
    const uint32_t fitting = fitting_engines();
    if (g_fitting.compare_exchange_strong(count, fitting)) count = fitting;
  }
  return count;
}

core::Result<engine::Engine*> affinity_of(uiwarp_cq& receives, uiwarp_cq& sends) {
  engine::Engine* engine = receives.queue->affinity();
  if (!engine) engine = sends.queue->affinity();
  if (!engine) {
    core::Result<engine::Engine*> chosen = choose(receives.context->engine, receives.vector);
    if (!chosen) return chosen;
    engine = *chosen;
  }
  set_affinity(receives, *engine);
  set_affinity(sends, *engine);
  return receives.queue->affinity();  // another thread may have been quicker
}

void set_first_affinity(uiwarp_cq& receives, uiwarp_cq& sends) {
  for (uiwarp_cq* cq : {&receives, &sends})
    if (!cq->queue->affinity()) set_affinity(*cq, *cq->context->engine);
}

void drop_affinity(uiwarp_cq& cq) {
  if (cq.counts_as_load) cq.queue->affinity()->load().fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace uiw::verbs
