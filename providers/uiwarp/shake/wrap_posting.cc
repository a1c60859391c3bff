// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Posting: refused as long as the program has not been given the completions that free the places.
// What is posted is the next table's business. It counts the places of shared receive queues, too,
// which completions of several queue pairs free: as free it takes those of what is held here.
#include <cerrno>
#include <cinttypes>

#include "shake/wraps.h"

namespace uiw::shake {
namespace {

// Null: none of this process's, or its places are not counted.
Qp* find(const uiwarp_qp* handle) {
  Process* const process = options.takes(core::Liberty::kFull) ? this_process() : nullptr;
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

// Without --shake, too, it is full where nothing is held.
int refuse(Qp& qp, uint32_t depth, const ibv_send_wr& wr) {
  if (qp.sends.held() == 0)
    return core::refuse(qp.told, ENOMEM,
                        "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                        ": the send queue is full: all %u places (max_send_wr) are taken; a place "
                        "is free when its completion, or a later one's, was polled",
                        qp.number, wr.wr_id, depth);
  return core::refuse(qp.told, ENOMEM,
                      "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                      ": full under --shake: all %u places (max_send_wr) are taken; a place is "
                      "free when its completion, or a later one's, was polled, and --shake holds "
                      "%zu completions back",
                      qp.number, wr.wr_id, depth, qp.sends.held());
}
int refuse(Qp& qp, uint32_t depth, const ibv_recv_wr& wr) {
  if (qp.receives.held() == 0)
    return core::refuse(qp.told, ENOMEM,
                        "ibv_post_recv: queue pair 0x%06x: wr_id 0x%" PRIx64
                        ": the receive queue is full: all %u places (max_recv_wr) are taken; a "
                        "place is free when its completion was polled",
                        qp.number, wr.wr_id, depth);
  return core::refuse(qp.told, ENOMEM,
                      "ibv_post_recv: queue pair 0x%06x: wr_id 0x%" PRIx64
                      ": full under --shake: all %u places (max_recv_wr) are taken; a place is "
                      "free when its completion was polled, and --shake holds %zu completions back",
                      qp.number, wr.wr_id, depth, qp.receives.held());
}

// Posts the first `room` of a list, which is the program's and may lie in memory that nobody writes
// to. Where it ended, null: behind the last; *left_out: because there was no more room.
template <class Wr, class Post>
int post_first(size_t room, Wr* first, Wr** end, bool* left_out, Post post_next) {
  size_t count = 0;
  for (const Wr* wr = first; wr && count <= room; wr = wr->next) ++count;
  *left_out = false;
  *end = nullptr;
  if (!first) return 0;
  if (count <= room) {
    const int error = post_next(first, end);
    if (!error) *end = nullptr;  // it says where only if it fails
    return error;
  }
  for (*end = first; room > 0; *end = (*end)->next, --room) {
    Wr one = **end, *ignored = nullptr;
    one.next = nullptr;
    if (const int error = post_next(&one, &ignored)) return error;
  }
  *left_out = true;
  return 0;
}

// Without the mutex: who is in a section of ibv_wr_start() has the next table's lock, and wants it.
template <class Wr, class Post>
int post(Qp& qp, Places& places, const Lane& lane, Wr* first, Wr** bad, Post post_next) {
  // It is in error, where requests complete that would not otherwise.
  if (lane.has_failed()) return post_next(first, bad);
  Wr* end = nullptr;
  bool left_out;
  const int error = post_first(room(qp, places, lane), first, &end, &left_out, post_next);
  {
    const std::lock_guard lock(qp.mutex);
    for (const Wr* wr = first; wr != end; wr = wr->next) places.post(completes(qp, *wr));
  }
  if (error || left_out) *bad = end;
  return left_out ? refuse(qp, places.depth(), *end) : error;
}

// What of a shared receive queue has completed and is held.
size_t held_of(Process& process, const uiwarp_srq* srq) {
  const std::lock_guard lock(process.mutex);
  size_t held = 0;
  for (const auto& [handle, qp] : process.qps)
    if (qp->srq == srq) held += qp->receives.held();
  return held;
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
  return qp && !qp->srq ? post(*qp, qp->receive_places, qp->receives, wr, bad, post_next)
                        : post_next(wr, bad);
}

int srq_post_recv(uiwarp_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Process* const process = options.takes(core::Liberty::kFull) ? this_process() : nullptr;
  if (!process) return next->srq_post_recv(srq, wr, bad);
  // In this order: what another thread's poll takes meanwhile counts as free, and not twice.
  const size_t held = held_of(*process, srq);
  const size_t room = held > 0 ? next->srq_room(srq) : 0;
  if (room == 0) return next->srq_post_recv(srq, wr, bad);
  ibv_recv_wr* end = nullptr;
  bool left_out;
  const int error = post_first(room > held ? room - held : 0, wr, &end, &left_out,
                               [&](ibv_recv_wr* first, ibv_recv_wr** stopped) {
                                 return next->srq_post_recv(srq, first, stopped);
                               });
  if (error || left_out) *bad = end;
  if (!left_out) return error;
  return core::refuse(process->told_of_srqs, ENOMEM,
                      "ibv_post_srq_recv: wr_id 0x%" PRIx64
                      ": full under --shake: all places (max_wr) are taken; a place is free when "
                      "its completion was polled, and --shake holds %zu completions back",
                      end->wr_id, held);
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
  if (room(*qp, qp->send_places, qp->sends) == 0) return refuse(*qp, qp->send_places.depth(), *wr);
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
