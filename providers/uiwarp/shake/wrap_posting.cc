// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Posting to queue pairs: refused as long as the program has not been given the completions that
// free the places. What is posted is the next table's business. Shared receive queues are not
// looked at: their places are freed by completions of several queue pairs.
#include <cerrno>

#include "shake/wraps.h"

namespace uiw::shake {
namespace {

// Null: none of this process's.
Qp* find(const uiwarp_qp* handle) {
  Process* const process = this_process();
  if (!process) return nullptr;
  const std::lock_guard lock(process->mutex);
  const auto found = process->qps.find(handle);
  return found == process->qps.end() ? nullptr : found->second.get();
}

uint32_t room(Qp& qp, Places& places, const Lane& lane) {
  const std::lock_guard lock(qp.mutex);
  return places.room(lane.given());
}

bool completes(const Qp& qp, const ibv_send_wr& wr) {
  return qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED);
}
bool completes(const Qp&, const ibv_recv_wr&) {
  return true;
}

// Without the mutex: who is in a section of ibv_wr_start() has the next table's lock, and wants it.
template <class Wr, class Post>
int post(Qp& qp, Places& places, const Lane& lane, Wr* first, Wr** bad, Post post_next) {
  // It is in error, where requests complete that would not otherwise.
  if (lane.has_failed()) return post_next(first, bad);
  uint32_t left = room(qp, places, lane);
  Wr *last = nullptr, *rest = first;
  for (; rest && left > 0; rest = rest->next, --left) last = rest;
  int error = 0;
  if (last) {
    last->next = nullptr;
    error = post_next(first, bad);
    last->next = rest;
    const std::lock_guard lock(qp.mutex);
    for (const Wr* wr = first; wr != (error ? *bad : rest); wr = wr->next)
      places.post(completes(qp, *wr));
  }
  if (error || !rest) return error;
  *bad = rest;
  return ENOMEM;
}

}  // namespace

namespace wrap {

int qp_post_send(uiwarp_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
  Qp* const qp = find(handle);
  const auto post_next = [&](ibv_send_wr* first, ibv_send_wr** stopped) {
    return next->qp_post_send(handle, first, stopped);
  };
  return qp ? post(*qp, qp->send_places, qp->sends, wr, bad, post_next) : post_next(wr, bad);
}

int qp_post_recv(uiwarp_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Qp* const qp = find(handle);
  const auto post_next = [&](ibv_recv_wr* first, ibv_recv_wr** stopped) {
    return next->qp_post_recv(handle, first, stopped);
  };
  return qp && !qp->has_srq ? post(*qp, qp->receive_places, qp->receives, wr, bad, post_next)
                            : post_next(wr, bad);
}

void qp_batch_begin(uiwarp_qp* handle) {
  next->qp_batch_begin(handle);
  if (Qp* const qp = find(handle)) {
    const std::lock_guard lock(qp->mutex);
    qp->before_batch = qp->send_places.posted();
  }
}

int qp_batch_add(uiwarp_qp* handle, const ibv_send_wr* wr) {
  Qp* const qp = find(handle);
  if (!qp || qp->sends.has_failed()) return next->qp_batch_add(handle, wr);
  if (room(*qp, qp->send_places, qp->sends) == 0) return ENOMEM;
  if (const int error = next->qp_batch_add(handle, wr)) return error;
  const std::lock_guard lock(qp->mutex);
  qp->send_places.post(completes(*qp, *wr));
  return 0;
}

int qp_batch_end(uiwarp_qp* handle, int publish) {
  // Another thread's as soon as the section ends.
  Qp* const qp = find(handle);
  uint64_t before = 0;
  if (qp) {
    const std::lock_guard lock(qp->mutex);
    before = qp->before_batch;
  }
  const int error = next->qp_batch_end(handle, publish);
  if (qp && (error || !publish)) {
    const std::lock_guard lock(qp->mutex);
    qp->send_places.take_back(before);
  }
  return error;
}

}  // namespace wrap
}  // namespace uiw::shake
