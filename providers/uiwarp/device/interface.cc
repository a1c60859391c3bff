// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/interface.h"

#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace uiw::device {
namespace {

constexpr size_t kMaxName = 63;

// FNV-1a: spreads short strings well enough to tell interfaces of one host apart.
uint64_t hash(std::string_view text, unsigned number) {
  uint64_t h = 0xcbf29ce484222325;
  auto mix = [&h](uint8_t octet) { h = (h ^ octet) * 0x100000001b3; };
  for (char c : text) mix(static_cast<uint8_t>(c));
  for (int shift = 0; shift < 32; shift += 8) mix(static_cast<uint8_t>(number >> shift));
  return h;
}

// Modified EUI-64 of a MAC address (RFC 4291 appendix A).
uint64_t eui64(const uint8_t mac[6]) {
  const uint8_t octets[8] = {
      static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  uint64_t value = 0;
  for (uint8_t octet : octets) value = value << 8 | octet;
  return value;
}

bool is_taken(std::span<const Device> devices, uint64_t guid) {
  return std::ranges::any_of(devices, [&](const Device& d) { return d.node_guid == guid; });
}

// librdmacm finds the device of an id by GUID alone, and takes 0 for "none": so the GUID must be
// distinct even where interfaces share a MAC (VLAN, bond) or have none (lo, tun).
uint64_t choose_guid(const Interface& interface, std::span<const Device> others) {
  static constexpr uint8_t kNoMac[6] = {};
  if (interface.has_mac && std::memcmp(interface.mac, kNoMac, sizeof kNoMac) != 0) {
    uint64_t guid = eui64(interface.mac);
    if (!is_taken(others, guid)) return guid;
  }
  uint64_t guid = hash(interface.name, interface.ifindex);
  while (guid == 0 || is_taken(others, guid)) ++guid;
  return guid;
}

bool is_mapped(const in6_addr& address) {
  return IN6_IS_ADDR_V4MAPPED(&address);
}

std::vector<in6_addr> order_gids(const std::vector<in6_addr>& addresses) {
  std::vector<in6_addr> gids;
  auto known = [&](const in6_addr& a) {
    return std::ranges::any_of(
        gids, [&](const in6_addr& g) { return std::memcmp(&g, &a, sizeof g) == 0; });
  };
  // IPv4 first: programs that take GID 0 want one whose low half is not zero.
  for (bool ipv4 : {true, false}) {
    for (const in6_addr& address : addresses) {
      if (is_mapped(address) == ipv4 && !known(address)) gids.push_back(address);
    }
  }
  return gids;
}

}  // namespace

in6_addr mapped(in_addr ipv4) {
  in6_addr out{};
  out.s6_addr[10] = out.s6_addr[11] = 0xff;
  std::memcpy(out.s6_addr + 12, &ipv4, sizeof ipv4);
  return out;
}

bool address_of(const sockaddr_storage& address, in6_addr& out) {
  if (address.ss_family == AF_INET) {
    out = mapped(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
    return true;
  }
  if (address.ss_family == AF_INET6) {
    out = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return true;
  }
  return false;
}

std::vector<Device> make_devices(std::span<const Interface> interfaces) {
  std::vector<const Interface*> usable;
  for (const Interface& interface : interfaces) {
    if ((interface.flags & IFF_UP) != 0 && !interface.addresses.empty()) {
      usable.push_back(&interface);
    }
  }
  std::ranges::sort(usable, {}, &Interface::ifindex);

  std::vector<Device> devices;
  devices.reserve(usable.size());
  for (const Interface* interface : usable) {
    Device device;
    device.name = ("uiw_" + interface->name).substr(0, kMaxName);
    device.interface = interface->name;
    device.ifindex = interface->ifindex;
    device.mtu = interface->mtu;
    std::memcpy(device.mac, interface->mac, sizeof device.mac);
    device.node_guid = choose_guid(*interface, devices);
    device.gids = order_gids(interface->addresses);
    device.uverbs_minor = kFirstUverbsMinor + static_cast<uint32_t>(devices.size());
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace uiw::device
