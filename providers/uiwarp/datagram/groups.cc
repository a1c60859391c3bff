// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/groups.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <span>

#include "core/gid.h"
#include "core/per_process.h"
#include "core/qp_number.h"
#include "core/raw_sys.h"
#include "datagram/drops.h"
#include "datagram/intake.h"
#include "device/device.h"
#include "device/gid_table.h"

namespace uiw::datagram {
namespace {

bool is_of_this_host(const in6_addr& gid) {
  return device::is_local_address(core::socket_address_of(gid, 0, 0));
}

class Group final : public Intake {
 public:
  Group(engine::Engine& engine, int fd, const in6_addr& address, unsigned ifindex)
      : Intake(engine, fd), address_(address), ifindex_(ifindex) {}

  bool is(const in6_addr& address, unsigned ifindex) const {
    return ifindex == ifindex_ && std::memcmp(&address, &address_, sizeof address) == 0;
  }
  bool is_at(unsigned ifindex) const { return ifindex == ifindex_; }

  int add(QueuePair& qp, bool& added) {
    const std::lock_guard lock(mutex_);
    added = false;
    if (find(qp) != count_) return 0;
    if (count_ == members_.size()) return ENOMEM;
    members_[count_++] = &qp;
    added = true;
    return 0;
  }
  bool remove(QueuePair& qp) {
    const std::lock_guard lock(mutex_);
    const size_t at = find(qp);
    if (at == count_) return false;
    members_[at] = members_[--count_];
    return true;
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return count_ == 0;
  }
  // Of the groups of the process.
  Group* next = nullptr;
  // Also on the engine, from where the socket can be closed.
  void end() {
    leave_group(fd(), address_, ifindex_);
    engine().run_sync([this] { close(); });
  }

 private:
  // count_: it is none.
  size_t find(const QueuePair& qp) const {
    return static_cast<size_t>(std::find(members_.begin(), members_.begin() + count_, &qp) -
                               members_.begin());
  }

  // With IPv6 a socket that is in a group at one interface gets what comes to the group by any that
  // some socket of the host joined it at, unless the group is of link-local scope: Linux'
  // inet6_mc_check() does not ask by which. With IPv4 it does.
  void on_arrival(const Arrival& arrival) override {
    if (arrival.envelope.ifindex != ifindex_) return drops().count(Drop::kOtherInterface);
    if (arrival.header.to != core::kGroupQpNumber) return drops().count(Drop::kNoQueuePair);
    const std::lock_guard lock(mutex_);
    for (QueuePair* const qp : std::span(members_).first(count_)) {
      // A sender gets no copy of what it has sent. Queue pairs of other hosts may have its number.
      const bool own = arrival.header.from == qp->qp_num();
      if (!own || !is_of_this_host(arrival.envelope.source)) qp->deliver(arrival);
    }
  }

  const in6_addr address_;
  const unsigned ifindex_;
  std::mutex mutex_;  // before a queue pair's
  size_t count_ = 0;
  std::array<QueuePair*, kMostAttached> members_{};
};

// A child of a fork gets groups of its own.
struct Groups {
  std::mutex mutex;
  Group* first = nullptr;  // under mutex, as links

  Group** find(const in6_addr& address, unsigned ifindex) {
    Group** link = &first;
    while (*link && !(*link)->is(address, ifindex)) link = &(*link)->next;
    return link;
  }
  core::Result<Group*> add(engine::Engine& engine, const in6_addr& address, unsigned ifindex) {
    uint32_t count = 0;
    for (const Group* group = first; group; group = group->next) count += group->is_at(ifindex);
    if (count >= kMostGroups) return core::Errno{ENOMEM};
    core::Result<int> fd = open_group(address, ifindex);
    if (!fd) return core::Errno{fd.error()};
    Group* const made = new (std::nothrow) Group(engine, *fd, address, ifindex);
    if (!made) {
      core::sys::close(*fd);
      return core::Errno{ENOMEM};
    }
    made->next = first;
    first = made;
    return made;
  }
};

constinit core::PerProcess<Groups> g_groups;

}  // namespace

int attach(engine::Engine& engine, QueuePair& qp, const in6_addr& group, unsigned ifindex,
           bool& added) {
  Groups* const all = g_groups.get();
  if (!all) return ENOMEM;
  const std::lock_guard lock(all->mutex);
  if (Group* const there = *all->find(group, ifindex)) return there->add(qp, added);
  core::Result<Group*> made = all->add(engine, group, ifindex);
  if (!made) return made.error();
  (*made)->add(qp, added);
  (*made)->begin();
  return 0;
}

int detach(QueuePair& qp, const in6_addr& group, unsigned ifindex) {
  Groups* const all = g_groups.get();
  if (!all) return EINVAL;
  Group* gone = nullptr;
  {
    const std::lock_guard lock(all->mutex);
    Group** const link = all->find(group, ifindex);
    if (!*link || !(*link)->remove(qp)) return EINVAL;
    if (!(*link)->is_empty()) return 0;
    gone = *link;
    *link = gone->next;
  }
  gone->end();
  return 0;
}

}  // namespace uiw::datagram
