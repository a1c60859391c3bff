// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which device programs see first, and take when nobody names one. Private to device/. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "device/device.h"

namespace uiw::device {

enum class Reach {
  kNetwork,   // has an address that other networks may know
  kBridge,    // so does a bridge, but on most hosts that is one to containers or virtual machines
  kLink,      // link-local addresses only: what containers' veths have
  kLoopback,  // this host
};

Reach reach_of(const State& state);

// All of 127.0.0.0/8 is the loopback interface's, whatever is configured (RFC 1122
// section 3.2.1.3).
bool is_loopback_address(const in6_addr& address);

// By reach and, where that is equal, by name, numbers in it by their value: it changes with
// addresses, but not with the order in which interfaces have come.
bool comes_first(const Listed& one, const Listed& other);

// Takes the loopback device out of `listed` where another one is up that other hosts may reach:
// programs that use all devices, or the fastest, would take it for a way to those.
void leave_loopback_out(std::vector<Listed>& listed);

}  // namespace uiw::device
