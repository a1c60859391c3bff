// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// RDMA devices of the host's own, and what they mean for uiwarp's.
#pragma once

#include <string>

namespace uiw::tool {

// Their names, each behind a space; empty when there are none. Also where uiwarp hides them from
// this process.
std::string host_devices();

// Whether programs see those and not uiwarp's (UIWARP_MODE).
bool stays_away();

}  // namespace uiw::tool
