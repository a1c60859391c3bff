// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/ah.h"

#include <cerrno>
#include <new>

#include "rendezvous/name.h"
#include "verbs/address_vector.h"
#include "verbs/context.h"

using namespace uiw;
using device::Limits;

int uiwarp_ah_create(uiwarp_pd* pd, const ibv_ah_attr* attr, uiwarp_ah** ah) {
  uiwarp_context& context = *pd->context;
  if (!context.face->address_handles) return EOPNOTSUPP;
  if (context.in_child()) return ENODEV;
  if (attr->port_num != 1) return EINVAL;
  auto address = verbs::resolve(*context.device, *context.face, *attr,
                                verbs::Destinations::kHostsAndGroups, "ibv_create_ah");
  if (!address) return address.error();
  if (!context.ahs.take(Limits::kMaxAh)) return ENOMEM;
  auto* const made = new (std::nothrow) uiwarp_ah;
  if (!made) {
    context.ahs.give();
    return ENOMEM;
  }
  made->pd = pd;
  made->destination = rendezvous::address_of(address->destination, 0, context.device->ifindex);
  made->source = address->source;
  made->traffic_class = attr->grh.traffic_class;
  made->hop_limit = attr->grh.hop_limit;
  pd->users.fetch_add(1, std::memory_order_relaxed);
  *ah = made;
  return 0;
}

int uiwarp_ah_destroy(uiwarp_ah* ah) {
  ah->pd->context->ahs.give();
  ah->pd->users.fetch_sub(1, std::memory_order_release);
  delete ah;
  return 0;
}
