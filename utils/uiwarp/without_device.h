// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which network interfaces have no RDMA device, and why.
#pragma once

#include <string>
#include <vector>

namespace uiw::tool {

// One sentence for each reason that there is: "no device: eth1 (it is down; ip link set ...)".
std::vector<std::string> without_device();

}  // namespace uiw::tool
