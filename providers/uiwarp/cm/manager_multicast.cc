// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Multicast groups of ids. There is no switch or subnet manager to ask: an id that has an address
// joins at once. ibv_attach_mcast makes a queue pair receive.
#include <cerrno>
#include <memory>
#include <new>

#include "cm/manager.h"
#include "cm/refusals.h"
#include "core/qp_number.h"
#include "transport/addresses.h"

namespace uiw::cm {

int Manager::join(Channel& channel, uint32_t number, uint64_t uid, const sockaddr_storage& group,
                  uint32_t& membership) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  static constexpr char kCall[] = "rdma_join_multicast";
  if (rules_.datagrams == nullptr) return refuse_service(*id, kCall);
  if (uid == 0) return EINVAL;
  if (id->service != Service::kDatagrams)
    return core::refuse_because(id->told, EINVAL, kCall, "groups are for ids of RDMA_PS_UDP");
  if (id->device == nullptr)
    return core::refuse_because(
        id->told, EINVAL, kCall,
        "the id has no address of a device: call it after rdma_bind_addr with an "
        "address other than the wildcard, or RDMA_CM_EVENT_ADDR_RESOLVED");
  if (id->state != IdState::kBound && id->state != IdState::kAddressResolved)
    return refuse_by_state(*id, kCall,
                           "after rdma_bind_addr or RDMA_CM_EVENT_ADDR_RESOLVED, and before "
                           "rdma_listen and rdma_resolve_route");
  if (!transport::is_multicast(group) || group.ss_family != id->source.ss_family)
    return core::refuse_because(
        id->told, EINVAL, kCall,
        "the address is not that of a multicast group of the family, IPv4 or "
        "IPv6, of the id's own");

  std::unique_ptr<Membership> made(new (std::nothrow) Membership);
  std::unique_ptr<QueuedEvent> event(new (std::nothrow) QueuedEvent);
  if (made == nullptr || event == nullptr) return ENOMEM;
  made->id = id;
  made->number = membership = ++last_membership_;
  made->uid = uid;
  made->group = group;
  event->event.type = EventType::kMulticastJoin;
  event->event.uid = uid;
  event->event.id = made->number;
  event->event.param.qp_num = core::kGroupQpNumber;
  event->event.param.qkey = kDatagramQkey;
  event->owner = id;
  event->membership = made.get();
  id->memberships.append(*made.release());
  queue(*event.release());
  return 0;
}

// A linear search: groups are few, and rarely left.
Membership* Manager::find_membership(Channel& channel, uint32_t number, int& error) {
  error = channel.open ? ENOENT : EBADF;
  for (Id* id = ids_.next(0); channel.open && id != nullptr; id = ids_.next(id->number)) {
    for (Membership* m = id->memberships.first(); m != nullptr; m = id->memberships.next(*m)) {
      if (m->number != number) continue;
      error = id->channel == &channel ? 0 : EINVAL;
      return error == 0 ? m : nullptr;
    }
  }
  return nullptr;
}

int Manager::leave(Channel& channel, uint32_t number, uint32_t& events_reported) {
  std::lock_guard hold(lock_);
  int error;
  Membership* const membership = find_membership(channel, number, error);
  if (membership == nullptr) return error;
  events_reported = membership->events_reported;
  Id& id = *membership->id;
  for (QueuedEvent *event = id.events.first(), *next; event != nullptr; event = next) {
    next = id.events.next(*event);
    if (event->membership == membership) unqueue(channel, *event);
  }
  end_membership(*membership);
  return 0;
}

// None of its events may be queued any more.
void Manager::end_membership(Membership& membership) {
  membership.id->memberships.remove(membership);
  delete &membership;
}

}  // namespace uiw::cm
