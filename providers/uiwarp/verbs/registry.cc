// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A hash table whose chains link the registrations themselves, so that adding one cannot fail.
#include "verbs/registry.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/clock.h"
#include "core/log.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
#include "rendezvous/ports.h"

namespace uiw::verbs {
namespace {

constexpr uint32_t kBuckets = 4096;
// Numbers without a port: their upper 16 bits are below 1024, where we use no port. 0 and 1 are
// special QPs in InfiniBand (core/qp_number.h).
constexpr uint32_t kPortless = 1024u << 8, kReserved = 2;

// Differs between processes, so that a stale number of another process matches nothing.
uint32_t first_number() {
  uint32_t number;
  if (!core::sys::random(&number, sizeof number)) number = static_cast<uint32_t>(core::now());
  return number % kPortless;
}

// Per process: in a forked child the engine of the parent's queue pairs does not run.
struct Registry {
  std::mutex mutex;
  Registration* buckets[kBuckets] = {};  // under mutex, as the next
  uint32_t last_portless = first_number();
  const pid_t process = getpid();

  Registration*& bucket(uint32_t qp_num) { return buckets[qp_num % kBuckets]; }
  Registration* look_up(uint32_t qp_num) {
    Registration* found = bucket(qp_num);
    while (found && found->qp_num != qp_num) found = found->next;
    return found;
  }
  void add(Registration& registration, uint32_t qp_num) {
    registration.qp_num = qp_num;
    registration.queue_pair = nullptr;
    Registration*& first = bucket(qp_num);
    registration.next = first;
    first = &registration;
  }
  // Devices allow far fewer queue pairs, so one is always free.
  uint32_t portless_number() {
    do {
      last_portless = (last_portless + 1) % kPortless;
    } while (last_portless < kReserved || look_up(last_portless));
    return last_portless;
  }
};
constinit core::PerProcess<Registry> g_registry;

}  // namespace

session::QueuePair* find_queue_pair(uint32_t qp_num) {
  Registry* const all = g_registry.get();
  if (!all) return nullptr;
  const std::lock_guard lock(all->mutex);
  const Registration* found = all->look_up(qp_num);
  return found ? found->queue_pair : nullptr;
}

bool for_each_queue_pair(void (*call)(session::QueuePair& queue_pair, void* with), void* with) {
  Registry* const all = g_registry.made();
  // A child of vfork() shares this memory; only its process number differs.
  if (!all || all->process != getpid()) return true;
  const std::unique_lock lock(all->mutex, std::try_to_lock);
  if (!lock) return false;
  for (const Registration* next : all->buckets)
    for (; next; next = next->next)
      if (next->queue_pair) call(*next->queue_pair, with);
  return true;
}

// Calls claim() under the mutex, so that the queue pair is not freed meanwhile.
int claim_queue_pair(uint32_t qp_num) {
  Registry* const all = g_registry.get();
  if (!all) return EINVAL;
  const std::lock_guard lock(all->mutex);
  const Registration* found = all->look_up(qp_num);
  return found && found->queue_pair ? found->queue_pair->claim() : EINVAL;
}

bool reserve_number(Registration& registration) {
  Registry* const all = g_registry.get();
  if (!all) return false;
  core::Result<uint32_t> number = rendezvous::take_number();
  if (!number) {
    core::log(core::LogLevel::kInfo,
              "no TCP port for queue pair numbers (%s): only rdma_cm can connect this one",
              strerrordesc_np(number.error()));
  }
  const std::lock_guard lock(all->mutex);
  all->add(registration, number ? *number : all->portless_number());
  return true;
}

int reserve_number(Registration& registration, rendezvous::PortCondition& condition) {
  Registry* const all = g_registry.get();
  if (!all) return ENOMEM;
  core::Result<uint32_t> number = rendezvous::take_number(&condition);
  if (!number) return number.error();
  const std::lock_guard lock(all->mutex);
  all->add(registration, *number);
  return 0;
}

void publish(Registration& registration, session::QueuePair* queue_pair) {
  const std::lock_guard lock(g_registry.get()->mutex);
  registration.queue_pair = queue_pair;
}

void unregister(Registration& registration) {
  Registry* const all = g_registry.get();
  if (!all) return;
  {
    const std::lock_guard lock(all->mutex);
    Registration** link = &all->bucket(registration.qp_num);
    while (*link && *link != &registration) link = &(*link)->next;
    if (!*link) return;
    *link = registration.next;
    registration.queue_pair = nullptr;
  }
  rendezvous::give_number(registration.qp_num);
}

}  // namespace uiw::verbs
