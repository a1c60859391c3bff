// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/door.h"

#include <cerrno>
#include <new>

#include "core/assert.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
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
  // True: nobody uses it any more, and nobody finds it.
  bool give_up(Door& door) {
    const std::lock_guard lock(mutex);
    if (--door.users_ > 0) return false;
    Door** link = &first;
    while (*link != &door) link = &(*link)->next_;
    *link = door.next_;
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
  if (g_doors.get()->give_up(*this)) close();
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
  qp->deliver(arrival);
}

}  // namespace uiw::datagram
