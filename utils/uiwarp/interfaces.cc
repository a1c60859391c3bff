// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "core/device_choice.h"
#include "core/gid.h"
#include "core/settings.h"
#include "host_devices.h"

namespace uiw::tool {
namespace {

// IFF_LOWER_UP of <linux/if.h>, which does not go with <net/if.h>. IFF_RUNNING comes later.
constexpr unsigned kCarrier = 1u << 16;

bool is_routed(const sockaddr* address, int family) {
  const size_t size = family == AF_INET    ? sizeof(sockaddr_in)
                      : family == AF_INET6 ? sizeof(sockaddr_in6)
                                           : 0;
  sockaddr_storage whole{};
  in6_addr host;
  memcpy(&whole, address, size);
  return core::address_of(whole, host) && core::is_routed(host);
}

}  // namespace

// What has no address of any kind has no entry in getifaddrs()'s list but a packet one.
std::map<std::string, Interface> interfaces() {
  std::map<std::string, Interface> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    Interface& interface = found[one->ifa_name];
    interface.up |= (one->ifa_flags & IFF_UP) != 0;
    const int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
    interface.addressed |= family == AF_INET || family == AF_INET6;
    interface.leads_to_others |=
        (one->ifa_flags & kCarrier) != 0 && one->ifa_addr && is_routed(one->ifa_addr, family);
  }
  freeifaddrs(list);
  return found;
}

std::vector<std::string> devices_now() {
  std::vector<std::string> names;
  if (stays_away()) return names;
  for (const auto& [name, interface] : interfaces())
    if (interface.up && interface.addressed && core::is_chosen(core::settings().devices, name))
      names.push_back(core::kDevicePrefix + name);
  return names;
}

}  // namespace uiw::tool
