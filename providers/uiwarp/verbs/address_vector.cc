// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/address_vector.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/be.h"
#include "core/gid.h"
#include "datagram/group.h"
#include "device/gid_table.h"
#include "rendezvous/name.h"

namespace uiw::verbs {
namespace {

bool is_unspecified(const in6_addr& gid) {
  return IN6_IS_ADDR_UNSPECIFIED(&gid) ||
         (IN6_IS_ADDR_V4MAPPED(&gid) && core::load_be32(gid.s6_addr + 12) == INADDR_ANY);
}

// The subject of a message: the caller, and what was given.
struct Who {
  explicit Who(const char* caller) { add("%s", caller); }
  void __attribute__((format(printf, 2, 3))) add(const char* format, ...) {
    const size_t used = std::strlen(text);
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
  }
  char text[256] = "";
};

datagram::GidType type_of(const device::Gid& gid) {
  return std::strcmp(gid.type, "RoCE v2") == 0 ? datagram::GidType::kV2 : datagram::GidType::kV1;
}

}  // namespace

core::Result<AddressVector> resolve(const device::Device& device, const device::Face& face,
                                    const ibv_ah_attr& attr, Destinations allowed, core::Told& told,
                                    const char* caller) {
  Who who(caller);
  const auto refuse = [&](const char* why) {
    return core::Errno{core::refuse_because(told, EINVAL, who.text, why)};
  };
  if (!attr.is_global)
    return refuse(
        "the peer has no GID, and a LID means nothing on TCP: choose a GID index (ibv_rc_pingpong: "
        "-g 0)");
  who.add(": sgid_index %u", attr.grh.sgid_index);
  const auto own = device::gid_at(device::state_of(device), face, attr.grh.sgid_index);
  if (!own || own->is_free()) return refuse("the device has no GID of that index");
  AddressVector found;
  found.source = own->address;
  static_assert(sizeof found.destination == sizeof attr.grh.dgid);
  std::memcpy(&found.destination, &attr.grh.dgid, sizeof attr.grh.dgid);
  found.destination = datagram::address_of_gid(found.destination);
  found.gid_type = type_of(*own);
  who.add(", which is %s, and dgid %s", core::text_of(found.source).text,
          core::text_of(found.destination).text);
  const in6_addr& to = found.destination;
  const bool group = datagram::is_group(to);
  if (is_unspecified(to) || (group && allowed == Destinations::kHosts))
    return refuse("the peer's GID is not the address of a host: both ends have to be uiwarp");
  if (IN6_IS_ADDR_V4MAPPED(&found.source) != IN6_IS_ADDR_V4MAPPED(&to))
    return refuse(
        "one of the two GIDs is an IPv4 address, the other an IPv6 one: choose GID indices of one "
        "kind at both ends");
  // Datagrams to a group leave through the device, no matter what the routes are.
  if (group) return found;
  const sockaddr_storage address = core::socket_address_of(to, 0, device.ifindex);
  if (rendezvous::is_loopback(found.source) && !device::is_local_address(address))
    return refuse(
        "the peer is on another host, which a loopback device does not reach: choose another "
        "device (ibv_rc_pingpong: -d)");
  sockaddr_storage from;
  if (const int error = device::route_source(address, from))
    return core::Errno{core::refuse(told, error,
                                    "%s: no route to the address that the peer's GID says: %s",
                                    who.text, strerrordesc_np(error))};
  return found;
}

}  // namespace uiw::verbs
