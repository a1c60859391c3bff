// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "without_device.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/device_choice.h"
#include "core/settings.h"
#include "interfaces.h"

namespace uiw::tool {
namespace {

constexpr char kLoopback[] = "lo";

// As device/listing_order.h leaves it out.
bool is_loopback_left_out(const std::map<std::string, Interface>& all) {
  const core::Settings& settings = core::settings();
  return settings.face == core::Face::kRoce && settings.devices[0] == 0 &&
         std::ranges::any_of(all, [](const auto& one) {
           return one.first != kLoopback && one.second.leads_to_others;
         });
}

}  // namespace

std::vector<WithoutDevice> without_device() {
  std::vector<WithoutDevice> out;
  const std::map<std::string, Interface> all = interfaces();
  for (const auto& [name, interface] : all) {
    if (!core::is_chosen(core::settings().devices, name))
      out.push_back({name, "left out by UIWARP_DEVICES", ""});
    else if (!interface.up)
      out.push_back({name, "down", "ip link set NAME up"});
    else if (!interface.addressed)
      out.push_back({name, "without an address", ""});
    else if (name == kLoopback && is_loopback_left_out(all))
      out.push_back({name, "left out by the RoCE face, because other interfaces are up",
                     "UIWARP_DEVICES=all shows it"});
  }
  for (const std::string& name : core::single_names(core::settings().devices))
    if (std::ranges::none_of(all,
                             [&](const auto& one) { return core::is_name_of(name, one.first); }))
      out.push_back({name, "not there, though UIWARP_DEVICES names it", "", true});
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
