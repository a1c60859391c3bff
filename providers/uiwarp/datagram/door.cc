// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/door.h"

#include <cerrno>
#include <new>
#include <utility>

#include "core/assert.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "datagram/drops.h"

namespace uiw::datagram {

// A child of a fork gets doors of its own.
struct Doors {
  std::mutex mutex;
  Door* first = nullptr;  // under mutex, as users and links

  Door* find(uint16_t port) const {
    Door* door = first;
    while (door && door->port_ != port) door = door->next_;
    return door;
  }
  // Takes the descriptor.
  Door* add(engine::Engine& engine, uint16_t port, int fd) {
    Door* const made = new (std::nothrow) Door(engine, port, fd);
    if (!made) {
      core::sys::close(fd);
      return nullptr;
    }
    made->next_ = first;
    first = made;
    return made;
  }
  core::Result<Door*> enter(engine::Engine& engine, uint16_t port) {
    const std::lock_guard lock(mutex);
    if (Door* const there = find(port)) {
      ++there->users_;
      return there;
    }
    core::Result<int> fd = open_port(port);
    if (!fd) return core::Errno{fd.error()};
    Door* const made = add(engine, port, *fd);
    if (!made) return core::Errno{ENOMEM};
    made->begin();
    return made;
  }
  // True: nobody uses it any more.
  bool give_up(Door& door) {
    const std::lock_guard lock(mutex);
    return --door.users_ == 0;
  }
  // False: somebody uses it again. Under the mutex until its socket is closed, since whoever does
  // not find it opens the port.
  bool close_unused(Door& door) {
    const std::lock_guard lock(mutex);
    if (door.users_ > 0) return false;
    Door** link = &first;
    while (*link != &door) link = &(*link)->next_;
    *link = door.next_;
    door.close();
    return true;
  }
};

namespace {

constinit core::PerProcess<Doors> g_doors;

}  // namespace

core::Result<Door*> Door::enter(engine::Engine& engine, uint16_t port) {
  Doors* const all = g_doors.get();
  if (!all) return core::Errno{ENOMEM};
  return all->enter(engine, port);
}

void Door::leave() {
  UIW_ASSERT(engine().on_engine_thread());
  if (!g_doors.get()->give_up(*this)) return;
  ending_ = true;
  take_back();
}

void Door::add(QueuePair& qp) {
  const std::lock_guard lock(members_mutex_);
  members_[core::index_of(qp.qp_num())] = &qp;
}

void Door::remove(QueuePair& qp) {
  const std::lock_guard lock(members_mutex_);
  members_[core::index_of(qp.qp_num())] = nullptr;
}

void Door::on_arrival(const Arrival& arrival) {
  const uint32_t to = arrival.header.to;
  const std::lock_guard lock(members_mutex_);
  QueuePair* const qp = core::port_of(to) == port_ ? members_[core::index_of(to)] : nullptr;
  if (!qp) return drops().count(Drop::kNoQueuePair);
  latest_ = core::index_of(to);
  ++delivered_;
  qp->deliver(arrival);
}

std::shared_ptr<queue::CompletionQueue> Door::queue_of_latest() {
  const std::lock_guard lock(members_mutex_);
  const QueuePair* const qp = members_[latest_];
  return qp ? qp->recv_cq().weak_from_this().lock() : nullptr;
}

// Is somebody busy-polling for what comes here?
void Door::on_received(uint64_t bytes) {
  if (!core::settings().poll_progress || ending_ || lease()) return;
  std::shared_ptr<queue::CompletionQueue> queue = queue_of_latest();
  if (!queue) return;
  if (std::exchange(judged_, queue.get()) != queue.get()) grants_ = {};
  const progress::QueueUse use{
      .empty_polls = queue->empty_polls(), .polls = queue->polls(), .arms = queue->arms()};
  const progress::Grant grant = grants_.on_arrival({.at = engine().now(),
                                                    .bytes = bytes,
                                                    .completed = delivered_,
                                                    .send_queue = use,
                                                    .receive_queue = use});
  if (grant != progress::Grant::kToReceiveQueue) return;
  progress::Lease* const granted = progress::Lease::of(engine(), *queue);
  if (granted && granted->grant(*this, true)) leased_ = std::move(queue);
}

void Door::on_revoked(bool was_received) {
  UIW_ASSERT(engine().on_engine_thread());
  grants_.on_revoked();
  // The lease goes with its queue, should nobody else have that any more: the caller is done with
  // it.
  const std::shared_ptr<queue::CompletionQueue> gone = std::move(leased_);
  if (was_received && !ending_) resume();
}

void Door::ask_back() {
  if (!back_.posted.exchange(true, std::memory_order_acq_rel)) engine().post(back_);
}

// A poller that is inside just now asks again when it leaves. Until then the port stays open, for
// the next user, if there is one by then.
void Door::take_back() {
  if (lease() && !lease()->revoke(*this)) return;
  if (!ending_ || back_.posted.load(std::memory_order_acquire)) return;
  if (g_doors.get()->close_unused(*this)) return;
  ending_ = false;
  resume();
}

}  // namespace uiw::datagram
