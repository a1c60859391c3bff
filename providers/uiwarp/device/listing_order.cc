// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/listing_order.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "core/gid.h"

namespace uiw::device {

bool is_loopback_address(const in6_addr& address) {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return true;
  return IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127;
}

Reach reach_of(const State& state) {
  if (std::ranges::any_of(state.addresses, is_loopback_address)) return Reach::kLoopback;
  if (std::ranges::none_of(state.addresses, core::is_routed)) return Reach::kLink;
  return state.is_bridge ? Reach::kBridge : Reach::kNetwork;
}

bool comes_first(const Listed& one, const Listed& other) {
  const Reach a = reach_of(one.state), b = reach_of(other.state);
  if (a != b) return a < b;
  return strverscmp(one.device->name.c_str(), other.device->name.c_str()) < 0;
}

void leave_loopback_out(std::vector<Listed>& listed) {
  const auto leads_to_others = [](const Listed& each) {
    const Reach reach = reach_of(each.state);
    return each.state.active && (reach == Reach::kNetwork || reach == Reach::kBridge);
  };
  if (std::ranges::none_of(listed, leads_to_others)) return;
  std::erase_if(listed,
                [](const Listed& each) { return reach_of(each.state) == Reach::kLoopback; });
}

}  // namespace uiw::device
