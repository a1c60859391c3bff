// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair whose request is to fail goes to ERR when its stand-in has completed, whether or not
// the program polls: it may be waiting for its receives to flush. So it is looked at later, too.
#include "core/tuning.h"
#include "faults/later.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

bool has_failing(Cq& cq) {
  for (const auto& [number, qp] : cq.qps) {
    const std::lock_guard lock(qp->mutex);
    if (qp->fate == Fate::kFailing || qp->fate == Fate::kFailed) return true;
  }
  return false;
}

// Whether one is left that is to go to ERR. cq.mutex is held.
bool look(Cq& cq, Notes& notes) {
  if (cq.is_destroyed) return false;
  take_completions(cq, notes);
  return has_failing(cq);
}

void look_again(const std::shared_ptr<Cq>& cq);

// cq->mutex is held.
void look_later(const std::shared_ptr<Cq>& cq) {
  // Without a thread it is looked at when the program polls.
  cq->is_watched = later(core::now() + core::tuning::kFailingQueueLook, [cq] { look_again(cq); });
}

void look_again(const std::shared_ptr<Cq>& cq) {
  Notes notes;
  const std::lock_guard lock(cq->mutex);
  cq->is_watched = false;
  if (look(*cq, notes)) look_later(cq);
}

}  // namespace

void watch(const std::shared_ptr<Cq>& cq) {
  Notes notes;
  const std::lock_guard lock(cq->mutex);
  // Most often that is all there is to do.
  if (look(*cq, notes) && !cq->is_watched) look_later(cq);
}

}  // namespace uiw::faults
