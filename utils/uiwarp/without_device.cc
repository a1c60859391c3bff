// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "without_device.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <map>
#include <string_view>

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

}  // namespace

std::vector<WithoutDevice> without_device() {
  std::vector<WithoutDevice> out;
  for (const auto& [name, interface] : interfaces()) {
    if (!core::is_chosen(core::settings().devices, name))
      out.push_back({name, "left out by UIWARP_DEVICES", ""});
    else if (!interface.up)
      out.push_back({name, "down", "ip link set NAME up"});
    else if (!interface.addressed)
      out.push_back({name, "without an address", ""});
  }
  return out;
}

std::vector<std::string> lines_of(const std::vector<WithoutDevice>& found) {
  std::map<std::string, std::string> names;  // by reason
  for (const WithoutDevice& one : found) {
    std::string& those = names[one.why + std::string(*one.mend ? ": " : "") + one.mend];
    those += (those.empty() ? "" : ", ") + one.interface;
  }
  constexpr std::string_view kName = "NAME";
  std::vector<std::string> lines;
  for (const auto& [reason, those] : names) {
    std::string line = reason;
    const size_t place = line.find(kName);
    if (place != line.npos && those.find(',') == those.npos)
      line.replace(place, kName.size(), those);
    lines.push_back("no device: " + those + " (" + line + ")");
  }
  return lines;
}

}  // namespace uiw::tool
