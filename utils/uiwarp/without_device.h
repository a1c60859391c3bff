// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which network interfaces have no RDMA device, and why.
#pragma once

#include <string>
#include <vector>

namespace uiw::tool {

struct WithoutDevice {
  std::string interface;
  const char* why;          // "down", "left out by UIWARP_DEVICES", "without an address"
  const char* mend;         // what to do about it; "": nothing that can be said
  bool is_missing = false;  // there is no such interface: only UIWARP_DEVICES has its name
};

// By name, and then those that are missing. Empty also when the kernel does not tell.
std::vector<WithoutDevice> without_device();

// A line for each reason: "no device: eth1, eth2 (down: ip link set NAME up)"; of one interface the
// command has its name.
std::vector<std::string> lines_of(const std::vector<WithoutDevice>& found);

}  // namespace uiw::tool
