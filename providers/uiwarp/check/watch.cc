// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/watch.h"

#include <time.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "check/destroyed_ids.h"
#include "check/text.h"
#include "check/wraps.h"
#include "core/own_thread.h"
#include "core/per_process.h"
#include "core/raw_sys.h"

namespace uiw::check::watch {
namespace {

// What was seen of a queue at the last look.
struct Look {
  uint64_t uses = 0;
  bool is_judged = false;          // since it was used last
  std::optional<SystemCall> call;  // what its thread was blocked in
  unsigned same_call = 0;          // looks in a row at which that was the same
};

constexpr unsigned kPatience = 2;  // looks in a row: a second and longer
constexpr timespec kPeriod{0, 500'000'000};

class Watch {
 public:
  void add(Cq& cq) {
    const std::lock_guard lock(mutex_);
    queues_[&cq] = {};
    start();
  }
  void remove(Cq& cq) {
    const std::lock_guard lock(mutex_);
    queues_.erase(&cq);
  }
  void event_taken(uint64_t uid, const Stack& here) {
    const std::lock_guard lock(mutex_);
    ids_.event_taken(uid, here);
  }
  void id_destroyed(uint64_t uid, uint32_t events, const Stack& here) {
    const std::lock_guard lock(mutex_);
    if (ids_.destroyed(uid, events, here, core::sys::gettid())) start();
  }

 private:
  // Under mutex_, as all below but run().
  void start() {
    is_started_ = is_started_ || core::start_thread(core::OwnThread::kCheck, run, this) == 0;
  }

  static void run(void* argument) {
    auto& self = *static_cast<Watch*>(argument);
    for (;;) {
      nanosleep(&kPeriod, nullptr);
      std::vector<Finding> findings;
      {
        const std::lock_guard lock(self.mutex_);
        for (auto& [cq, look] : self.queues_) self.look_at(*cq, look, findings);
        self.ids_.look(findings);
      }
      for (const Finding& finding : findings) Report::instance().add(finding);
    }
  }

  void look_at(Cq& cq, Look& look, std::vector<Finding>& findings) {
    const uint64_t uses = cq.usage.count();
    if (uses != look.uses) {
      look = {.uses = uses, .is_judged = false, .call = {}, .same_call = 0};
      return;
    }
    if (look.is_judged) return;
    uint32_t messages = 0;
    if (next->cq_waiting(cq.next, &messages) == 0) return;
    // Of one that was never polled it is who made it.
    const int thread = cq.usage.poller() ? cq.usage.poller() : cq.maker;
    const std::optional<SystemCall> call = blocked_in(thread);
    look.same_call = call && call == look.call ? look.same_call + 1 : 0;
    look.call = call;
    if (look.same_call < kPatience) return;
    look.is_judged = true;
    judge_queue(cq, *call, findings);
  }

  void judge_queue(Cq& cq, const SystemCall& call, std::vector<Finding>& findings) {
    Blocked blocked;
    blocked.wait = waits_for(call, cq.channel_fd);
    blocked.is_shared = cq.usage.is_shared();
    for (const auto& [other, look] : queues_)
      blocked.others += other != &cq && other->channel_fd == cq.channel_fd &&
                        other->armed().last.how != Arming::How::kNever;
    const Cq::Armed armed = cq.armed();
    blocked.arming = armed.last;
    blocked.waiting = next->cq_waiting(cq.next, &blocked.messages);
    const std::optional<LostEvent> lost = judge(blocked);
    if (!lost) return;
    const Objects::Entry entry = Objects::instance().find(&cq);
    Finding finding{Kind::kLostEvent, entry.name, {}, lost->what, {}, lost->is_hint};
    if (armed.last.how != Arming::How::kNever)
      finding.places.push_back({"last armed", armed.where});
    finding.places.push_back({"created", entry.created});
    findings.push_back(std::move(finding));
  }

  std::mutex mutex_;
  bool is_started_ = false;
  std::unordered_map<Cq*, Look> queues_;
  DestroyedIds ids_;
};

// A child has no thread of its parent's.
Watch& instance() {
  static constinit core::PerProcess<Watch> watch;
  return *watch.get();
}

}  // namespace

void add(Cq& cq) {
  instance().add(cq);
}
void remove(Cq& cq) {
  instance().remove(cq);
}
void event_taken(uint64_t uid, const Stack& here) {
  instance().event_taken(uid, here);
}
void id_destroyed(uint64_t uid, uint32_t events, const Stack& here) {
  instance().id_destroyed(uid, events, here);
}

}  // namespace uiw::check::watch
