// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The network interfaces of this host, and which of them have an RDMA device.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace uiw::tool {

struct Interface {
  bool up = false;
  bool addressed = false;  // IPv4 or IPv6
  // Has a carrier, and an address that other networks may know (device/listing_order.h).
  bool leads_to_others = false;
};

// By name. Empty also when the kernel does not tell.
std::map<std::string, Interface> interfaces();

// The names of the devices that programs see now, as UIWARP_DEVICES has it.
std::vector<std::string> devices_now();

}  // namespace uiw::tool
