// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is posted to send queues, request by request. In place of one that is to fail an empty RDMA
// Write is posted, which does nothing at the peer and completes behind all before it: then its
// completion gets the status asked for, and the queue pair goes to ERR (wrap_completions.cc). What
// is posted behind it is held until then, so that it flushes and is not carried out.
#include <cerrno>

#include "core/request_sges.h"
#include "faults/malformed.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

// What is to become of a request.
enum class Course : uint8_t {
  kPass,     // it is posted as it is
  kStandIn,  // an empty RDMA Write is, in its place
  kHold,     // it is kept, and flushed later
  kRefuse,   // ENOMEM: as many are held as the queue has room for
};

ibv_send_wr stand_in_for(const ibv_send_wr& wr) {
  ibv_send_wr empty{};
  empty.wr_id = wr.wr_id;
  empty.opcode = IBV_WR_RDMA_WRITE;
  empty.send_flags = IBV_SEND_SIGNALED;
  return empty;
}

// Whether the connection ends with this request. qp.mutex is held.
bool is_doomed(Qp& qp, const ibv_send_wr& wr, Counted& counted) {
  if (!qp.doom || qp.doom->edition != rules().edition || qp.fate != Fate::kNone) return false;
  Doom& doom = *qp.doom;
  counted.carried = core::bytes_of(core::sges_of(wr));
  doom.carried += counted.carried;
  const Rule& rule = *doom.hit.rule;
  return rule.bytes == 0 || doom.carried > rule.bytes;
}

// qp.posting is held, by which requests come here in the order in which they are posted.
Course decide(Qp& qp, const ibv_send_wr& wr) {
  const std::lock_guard lock(qp.mutex);
  Sent sent = sent_of(qp, wr);
  if (qp.fate == Fate::kFailing || qp.fate == Fate::kFailed) {
    if (qp.held.size() >= qp.cap.max_send_wr) return Course::kRefuse;
    sent.signaled = sent.is_replaced = true;
    qp.held.push_back(sent);
    return Course::kHold;
  }
  Event event;
  if (qp.fate == Fate::kNone && event_of(wr.opcode, event)) count(qp, event, sent);
  if (!sent.fails() && is_doomed(qp, wr, sent.counted)) sent.hit = qp.doom->hit;
  if (sent.fails()) {
    sent.signaled = sent.is_replaced = true;
    qp.fate = Fate::kFailing;
  }
  qp.sends.add(sent);
  return sent.fails() ? Course::kStandIn : Course::kPass;
}

// A list or a batch. qp.posting is held.
void begin(Qp& qp) {
  qp.batch_added = qp.batch_held = qp.batch_kept = 0;
  qp.batch_lost.clear();
}

// Of the rules that have met what was posted of it since, but for those that are told of when it
// completes. qp.posting is held.
void tell_of_posted(Qp& qp, Notes& notes) {
  for (const Hit& hit : qp.batch_lost) notes.datagram(hit, qp);
  tell_of_pace(qp, qp.batch_kept, notes);
}

// qp.mutex is held.
void give_back(Qp& qp, const Counted& counted) {
  if (counted.rules) qp.stream.take_back(*counted.rules, {.event = counted.event});
  if (qp.doom) qp.doom->carried -= std::min(counted.carried, qp.doom->carried);
}

bool is_failing(Qp& qp) {
  const std::lock_guard lock(qp.mutex);
  return qp.fate == Fate::kFailing || qp.fate == Fate::kFailed;
}

// Posts one of a list by `post`.
template <class Post>
int post_one(Qp& qp, const ibv_send_wr& wr, Post post) {
  ibv_send_wr one = wr;
  one.next = nullptr;
  if (is_malformed(wr, qp.cap)) return post(one);
  switch (decide(qp, wr)) {
    case Course::kRefuse:
      return ENOMEM;
    case Course::kHold:
      ++qp.batch_held;
      return 0;
    case Course::kStandIn:
      one = stand_in_for(wr);
      break;
    case Course::kPass:
      break;
  }
  if (qp.parcels.size() >= qp.cap.max_send_wr) {
    take_back(qp, 1, 0);
    return ENOMEM;
  }
  if (keep_back(qp, one)) {
    ++qp.batch_kept;
    return 0;
  }
  if (const int error = post(one)) {
    take_back(qp, 1, 0);
    return error;
  }
  ++qp.batch_added;
  return 0;
}

// One of a list, to a queue pair that is connected. qp.posting is held.
int post_request(Qp& qp, const ibv_send_wr& wr) {
  return post_one(qp, wr, [&](ibv_send_wr& one) {
    ibv_send_wr* ignored = nullptr;
    return next->qp_post_send(qp.next, &one, &ignored);
  });
}

}  // namespace

Sent sent_of(const Qp& qp, const ibv_send_wr& wr) {
  return {.wr_id = wr.wr_id,
          .signaled = qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED),
          .opcode = wr.opcode};
}

void count(Qp& qp, Event event, Sent& sent) {
  sent.counted.rules = &rules();
  sent.counted.event = event;
  sent.hit = qp.stream.next(*sent.counted.rules, event);
}

void take_back(Qp& qp, size_t added, size_t held) {
  const std::lock_guard lock(qp.mutex);
  bool has_stand_in = false;
  for (const Sent& sent : qp.sends.extract_newest(added)) {
    has_stand_in = has_stand_in || sent.fails();
    give_back(qp, sent.counted);
  }
  qp.held.resize(qp.held.size() - std::min(held, qp.held.size()));
  if (has_stand_in && qp.fate == Fate::kFailing) qp.fate = Fate::kNone;
}

namespace wrap {

int qp_post_send(uiwarp_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
  Qp& qp = of(handle);
  if (qp.foreign()) return next->qp_post_send(qp.next, wr, bad);
  if (const int error = failing(Event::kPostSend, qp)) {
    if (bad) *bad = wr;
    return error;
  }
  Notes notes;
  int error = 0;
  {
    const std::lock_guard lock(qp.posting);
    begin(qp);
    for (; wr && !error; wr = error ? wr : wr->next)
      error = (qp.is_for_datagrams ? post_datagram : post_request)(qp, *wr);
    tell_of_posted(qp, notes);
  }
  if (error && bad) *bad = wr;
  if (is_failing(qp)) watch(qp.send_cq);
  return error;
}

void qp_batch_begin(uiwarp_qp* handle) {
  Qp& qp = of(handle);
  if (qp.foreign()) return next->qp_batch_begin(qp.next);
  qp.posting.lock();
  begin(qp);
  next->qp_batch_begin(qp.next);
}

int qp_batch_add(uiwarp_qp* handle, const ibv_send_wr* wr) {
  Qp& qp = of(handle);
  if (qp.foreign()) return next->qp_batch_add(qp.next, wr);
  if (qp.is_for_datagrams) return add_datagram(qp, *wr);
  return post_one(qp, *wr, [&](ibv_send_wr& one) { return next->qp_batch_add(qp.next, &one); });
}

int qp_batch_end(uiwarp_qp* handle, int publish) {
  Qp& qp = of(handle);
  if (qp.foreign()) return next->qp_batch_end(qp.next, publish);
  Notes notes;
  const int refused = publish ? failing(Event::kPostSend, qp) : 0;
  // Where all are held there is nothing to post.
  const bool all_held = qp.batch_added == 0 && qp.batch_held + qp.batch_kept > 0;
  const int error = next->qp_batch_end(qp.next, publish && !refused && !all_held);
  if (!publish || refused || error) {
    take_back(qp, qp.batch_added + qp.batch_kept, qp.batch_held);
    drop_parcels(qp, qp.batch_kept);
  } else {
    tell_of_posted(qp, notes);
  }
  qp.posting.unlock();
  if (is_failing(qp)) watch(qp.send_cq);
  return refused ? refused : error;
}

}  // namespace wrap
}  // namespace uiw::faults
