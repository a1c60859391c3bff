// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/destroyed.h"

#include <time.h>

#include <algorithm>
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
  void (*free)(const void*) = nullptr;
};

class Graveyard {
 public:
  void add(Buried one) {
    constexpr size_t kMost = 256;
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(one));
    if (all_.size() <= kMost) return;
    all_.front().free(all_.front().entry.object);
    all_.pop_front();
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
  std::deque<Buried> all_;  // under mutex_
};

Graveyard& graveyard() {
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

}  // namespace

Inside::Inside(Life& life, const void* object, const char* call) {
  if (life.enter()) {
    life_ = &life;
    return;
  }
  const Buried gone = graveyard().find(object);
  const std::string name =
      gone.entry.object ? gone.entry.name : Objects::instance().find(object).name;
  Finding finding{Kind::kUsedAfterDestroy, name, {}, {}, {{"called", {}}}};
  capture(finding.places[0].stack);
  if (gone.entry.object) {
    finding.what = text("%s is called after it was destroyed", call);
    finding.places.push_back({"destroyed", gone.destroyed});
    finding.places.push_back({"created", gone.entry.created});
  } else {
    finding.what = text("%s is called while another thread destroys it", call);
  }
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

}  // namespace uiw::check
