// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Two network namespaces with a virtual Ethernet between them: two hosts on this machine, for whom
// they are made only. They end with the last process and descriptor that uses them.
#pragma once

#include <cstdint>
#include <string>

namespace uiw::tool {

// Of the interface eth0 on both hosts.
constexpr char kServerAddress[] = "10.0.0.1";
constexpr char kClientAddress[] = "10.0.0.2";
constexpr char kServerAddress6[] = "fd00::1";
constexpr char kClientAddress6[] = "fd00::2";

// Descriptors for setns(2).
struct TwoHosts {
  int server = -1;
  int client = -1;
};

// Makes them, and leaves this process in the server's; without root in a user namespace of its own,
// too, in which it is the same user. Returns false and says why and what to do when this is not
// allowed here. Only for a process with one thread. `mtu`: bytes, 1280 (IPv6's least) to 65535.
bool make_two_hosts(uint32_t mtu, TwoHosts& hosts, std::string& problem);

}  // namespace uiw::tool
