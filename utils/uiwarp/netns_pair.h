// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout.h"

namespace uiw::tool {

// {server} and {client} in a word of a command stand for the address of that host.
struct PairPlan {
  std::vector<std::string> server, client;
  uint16_t port = 0;    // at which the server listens; 0: at any that is not of the system's choice
  double wait = 10;     // seconds until the client is started whether the server listens or not
  double grace = 5;     // seconds that one has to end after the other
  uint32_t mtu = 1500;  // bytes
};

// Runs both commands with the devices visible, on two hosts (two_hosts.h), the client as soon as
// the server listens. What they have started and left ends with them. The exit status: that of the
// client, else that of a server that failed; 125 no namespaces, or uiwarp is incomplete; 126, 127
// as of run_program(); 128 + the signal that ended us.
int netns_pair(const Layout& layout, PairPlan plan);

}  // namespace uiw::tool
