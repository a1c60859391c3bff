// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "without_device.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <map>

#include "core/device_choice.h"
#include "core/settings.h"

namespace uiw::tool {
namespace {

struct Found {
  bool up = false;
  bool addressed = false;
};

// By name. What has no address of any kind has no entry in getifaddrs()'s list but a packet one.
std::map<std::string, Found> interfaces() {
  std::map<std::string, Found> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    Found& interface = found[one->ifa_name];
    interface.up |= (one->ifa_flags & IFF_UP) != 0;
    const int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
    interface.addressed |= family == AF_INET || family == AF_INET6;
  }
  freeifaddrs(list);
  return found;
}

void add(std::string& names, const std::string& name) {
  names += (names.empty() ? "" : ", ") + name;
}

}  // namespace

std::vector<std::string> without_device() {
  std::string left_out, down, bare;
  for (const auto& [name, interface] : interfaces()) {
    if (!core::is_chosen(core::settings().devices, name))
      add(left_out, name);
    else if (!interface.up)
      add(down, name);
    else if (!interface.addressed)
      add(bare, name);
  }
  std::vector<std::string> lines;
  if (!left_out.empty())
    lines.push_back("no device: " + left_out + " (left out by UIWARP_DEVICES)");
  if (!down.empty()) lines.push_back("no device: " + down + " (down: ip link set NAME up)");
  if (!bare.empty()) lines.push_back("no device: " + bare + " (without an address)");
  return lines;
}

}  // namespace uiw::tool
