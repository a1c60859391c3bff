// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/ah.h"

#include <cerrno>
#include <new>

#include "datagram/socket.h"
#include "verbs/address_vector.h"
#include "verbs/context.h"

using namespace uiw;
using device::Limits;

int uiwarp_ah_create(uiwarp_pd* pd, const ibv_ah_attr* attr, uiwarp_ah** ah) {
  uiwarp_context& context = *pd->context;
  core::Told& told = context.told.ah;
  if (!context.face->address_handles)
    return core::refuse(told, EOPNOTSUPP,
                        "ibv_create_ah: devices of the %s face have no address handles, which are "
                        "for datagrams: UIWARP_FACE=roce has them (uiwarp run --as roce)",
                        context.face->name);
  if (const int error = verbs::check_usable(*pd)) return error;
  if (attr->port_num != 1)
    return core::refuse(told, EINVAL, "ibv_create_ah: port_num is %u, the device has port 1",
                        attr->port_num);
  auto address = verbs::resolve(*context.device, *context.face, *attr,
                                verbs::Destinations::kHostsAndGroups, told, "ibv_create_ah");
  if (!address) return address.error();
  if (!context.ahs.take(Limits::kMaxAh))
    return core::refuse(told, ENOMEM,
                        "ibv_create_ah: the device has %u address handles, its limit "
                        "(ibv_query_device: max_ah)",
                        Limits::kMaxAh);
  auto* const made = new (std::nothrow) uiwarp_ah;
  if (!made) {
    context.ahs.give();
    return ENOMEM;
  }
  made->owner = pd;
  made->pd = pd->id;
  made->to = datagram::make_destination({.destination = address->destination,
                                         .source = address->source,
                                         .ifindex = context.device->ifindex,
                                         .traffic_class = attr->grh.traffic_class,
                                         .hop_limit = attr->grh.hop_limit,
                                         .gid_type = address->gid_type},
                                        datagram::socket_family());
  verbs::hold(*pd, verbs::User::kAddressHandle);
  *ah = made;
  return 0;
}

int uiwarp_ah_destroy(uiwarp_ah* ah) {
  ah->owner->context->ahs.give();
  verbs::let_go(*ah->owner, verbs::User::kAddressHandle);
  delete ah;
  return 0;
}
