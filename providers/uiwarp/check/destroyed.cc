// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/destroyed.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include "check/report.h"
#include "check/text.h"
#include "core/per_process.h"

namespace uiw::check {
namespace {

struct Buried {
  Objects::Entry entry;
  Stack destroyed;
  void (*free)(const void*) = [](const void*) {};
};

// Enough for who uses one after it has destroyed all it had; each takes some hundred bytes.
constexpr size_t kMost = 1024;

class Graveyard {
 public:
  void add(Buried one) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(one));
    if (all_.size() <= kMost) return;
    all_.front().free(all_.front().entry.object);
    all_.pop_front();
  }
  void remove(const void* object) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const Buried& one) { return one.entry.object == object; });
  }
  // Each belongs to one that was added before it, here or among the handles, so it outlives that.
  void add_memory(void* memory) {
    const std::lock_guard lock(mutex_);
    memory_.push_back(memory);
    if (memory_.size() <= 2 * kMost) return;
    std::free(memory_.front());
    memory_.pop_front();
  }
  // Without a name, if another thread is just destroying it.
  Buried find(const void* object) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(all_, [&](const Buried& one) { return one.entry.object == object; });
    return found == all_.end() ? Buried{} : *found;
  }

 private:
  std::mutex mutex_;
  std::deque<Buried> all_;    // under mutex_
  std::deque<void*> memory_;  // under mutex_
};

Graveyard& graveyard() {
  static constinit core::PerProcess<Graveyard> all;
  return *all.get();
}

// Of the next table's handles: apart, since one of our objects may come to lie where one of its
// was.
Graveyard& handles() {
  static constinit core::PerProcess<Graveyard> all;
  return *all.get();
}

template <class Object>
void bury_object(Object* object) {
  Buried one{Objects::instance().find(object), {}, [](const void* gone) {
               delete static_cast<const Object*>(gone);
             }};
  one.entry.object = object;
  capture(one.destroyed);
  Objects::instance().remove(object);
  graveyard().add(std::move(one));
}

// `one`: what was found. Whether that was anything.
bool report_if_gone(const Buried& one, const char* call, As as) {
  if (!one.entry.object) return false;
  Finding finding{Kind::kUsedAfterDestroy, one.entry.name, {}, {}, {{"called", {}}}};
  capture(finding.places[0].stack);
  finding.what =
      text("%s is %s after it was destroyed", call, as == As::kItself ? "called" : "given it");
  finding.places.push_back({"destroyed", one.destroyed});
  finding.places.push_back({"created", one.entry.created});
  Report::instance().add(finding);
  return true;
}

}  // namespace

Inside::Inside(Life& life, const void* object, const char* call) {
  if (life.enter()) {
    life_ = &life;
    return;
  }
  if (is_gone(object, call)) return;
  Finding finding{
      Kind::kUsedAfterDestroy, Objects::instance().find(object).name, {}, {}, {{"called", {}}}};
  capture(finding.places[0].stack);
  finding.what = text("%s is called while another thread destroys it", call);
  Report::instance().add(finding);
}

void end_life(Life& life, const void* object, const char* call) {
  constexpr timespec kStep{0, 1'000'000};
  constexpr unsigned kSteps = 1000;
  life.end();
  const uint32_t within = life.within();
  if (within == 0) return;
  const Objects::Entry entry = Objects::instance().find(object);
  Finding finding{Kind::kUsedAfterDestroy, entry.name, {}, {}, {{"called", {}}}};
  capture(finding.places[0].stack);
  finding.what = text("%s is called while another thread is in a call on it", call);
  finding.places.push_back({"created", entry.created});
  Report::instance().add(finding);
  for (unsigned i = 0; i < kSteps && life.within() > 0; ++i) nanosleep(&kStep, nullptr);
}

void bury(Pd* pd) {
  bury_object(pd);
}

void bury(Mr* mr) {
  mr->region.reset();
  bury_object(mr);
}

void bury(Cq* cq) {
  bury_object(cq);
}

void bury(Srq* srq) {
  srq->receives.clear();
  bury_object(srq);
}

void bury(Qp* qp) {
  qp->sends.clear();
  qp->receives.clear();
  bury_object(qp);
}

void bury_handle(const void* handle) {
  std::optional<Objects::Entry> entry = Objects::instance().extract(handle);
  if (!entry) return;  // its parent's
  Buried one{std::move(*entry), {}};
  capture(one.destroyed);
  handles().add(std::move(one));
}

void bring_back(const void* handle) {
  Buried one = handles().find(handle);
  if (!one.entry.object) return;
  handles().remove(handle);
  Objects::instance().put_back(std::move(one.entry));
}

void make_way(const void* handle) {
  handles().remove(handle);
}

void bury_memory(void* memory) {
  graveyard().add_memory(memory);
}

bool is_gone(const void* object, const char* call, As as) {
  return object && report_if_gone(graveyard().find(object), call, as);
}

bool is_handle_gone(const void* handle, const char* call, As as) {
  return handle && report_if_gone(handles().find(handle), call, as);
}

}  // namespace uiw::check
