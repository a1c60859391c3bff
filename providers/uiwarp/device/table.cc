// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/table.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/device_choice.h"
#include "device/path_mtu.h"

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

bool is_same(const in6_addr& a, const in6_addr& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool contains(const std::vector<in6_addr>& list, const in6_addr& address) {
  return std::ranges::any_of(list, [&](const in6_addr& a) { return is_same(a, address); });
}

void set_path_mtu(Device& device, const Interface& interface) {
  device.path_mtu.store(bytes_of(largest_ib_mtu(interface.mtu)), std::memory_order_relaxed);
}

// True when a slot changed.
bool follow_addresses(std::vector<in6_addr>& slots, const std::vector<in6_addr>& addresses) {
  bool changed = false;
  for (in6_addr& slot : slots) {
    if (IN6_IS_ADDR_UNSPECIFIED(&slot) || contains(addresses, slot)) continue;
    slot = in6addr_any;
    changed = true;
  }
  // IPv4 first: programs that take GID 0 want one whose low half is not zero.
  for (bool ipv4 : {true, false}) {
    for (const in6_addr& address : addresses) {
      if (IN6_IS_ADDR_V4MAPPED(&address) != ipv4 || contains(slots, address)) continue;
      auto free = std::ranges::find_if(
          slots, [](const in6_addr& slot) { return IN6_IS_ADDR_UNSPECIFIED(&slot); });
      if (free != slots.end()) {
        *free = address;
      } else {
        slots.push_back(address);
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace

// librdmacm finds the device of an id by GUID alone, and takes 0 for "none": so the GUID must be
// distinct even where interfaces share a MAC (VLAN, bond), have none (lo, tun), or are made again
// with the MAC that one which has gone had: librdmacm would go on with that.
uint64_t Table::choose_guid(const Interface& interface) const {
  static constexpr uint8_t kNoMac[6] = {};
  if (interface.has_mac && std::memcmp(interface.mac, kNoMac, sizeof kNoMac) != 0) {
    uint64_t guid = eui64(interface.mac);
    if (!guids_.contains(guid)) return guid;
  }
  uint64_t guid = hash(interface.name, interface.ifindex);
  while (guid == 0 || guids_.contains(guid)) ++guid;
  return guid;
}

// The name is taken where an interface was renamed and another one got its name.
std::string Table::choose_name(const Interface& interface) const {
  std::string name = (core::kDevicePrefix + interface.name).substr(0, kMaxName);
  const bool taken =
      std::ranges::any_of(present_, [&](const Entry* e) { return e->device.name == name; });
  if (taken) name += "_" + std::to_string(interface.ifindex);
  return name;
}

Table::Entry* Table::find(unsigned ifindex) {
  for (Entry* entry : present_) {
    if (entry->device.ifindex == ifindex) return entry;
  }
  return nullptr;
}

Table::Entry* Table::find(const Device& device) {
  for (Entry* const entry : present_)
    if (&entry->device == &device) return entry;
  return nullptr;
}

void Table::follow(Entry& entry, const Interface& interface, std::vector<Noticed>& noticed) {
  State& state = entry.state;
  entry.has_carrier = interface.up && interface.carrier;
  const bool readdressed = follow_addresses(state.addresses, interface.addresses);
  if (readdressed || state.mtu != interface.mtu || state.interface != interface.name) {
    ++version_;
  }
  state.interface = interface.name;
  state.mtu = interface.mtu;
  set_path_mtu(entry.device, interface);
  state.is_bridge = interface.is_bridge;
  // Who is told that a port is active finds its addresses.
  if (readdressed) noticed.push_back({&entry.device, Change::kGids});
  follow_port(entry, noticed);
}

void Table::follow_port(Entry& entry, std::vector<Noticed>& noticed) {
  const bool active = entry.has_carrier && entry.held_by == 0;
  if (std::exchange(entry.state.active, active) == active) return;
  ++version_;
  noticed.push_back({&entry.device, active ? Change::kPortActive : Change::kPortDown});
}

std::vector<Table::Noticed> Table::hold_down(const Device& device, Holder by, bool down) {
  std::vector<Noticed> noticed;
  if (Entry* const entry = find(device)) {
    const unsigned bit = 1u << static_cast<unsigned>(by);
    entry->held_by = down ? entry->held_by | bit : entry->held_by & ~bit;
    follow_port(*entry, noticed);
  }
  return noticed;
}

std::vector<Table::Noticed> Table::shift_addresses(const Device& device) {
  Entry* const entry = find(device);
  if (!entry) return {};
  ++version_;
  entry->state.addresses.insert(entry->state.addresses.begin(), in6addr_any);
  return {{&entry->device, Change::kGids}};
}

void Table::end(Entry& entry, std::vector<Noticed>& noticed) {
  ++version_;
  State& state = entry.state;
  state.gone = true;
  std::ranges::fill(state.addresses, in6addr_any);
  if (state.active) noticed.push_back({&entry.device, Change::kPortDown});
  state.active = false;
  noticed.push_back({&entry.device, Change::kGone});
}

void Table::add(const Interface& interface) {
  ++version_;
  auto entry = std::make_unique<Entry>();
  entry->device.name = choose_name(interface);
  entry->device.ifindex = interface.ifindex;
  entry->device.node_guid = choose_guid(interface);
  entry->device.uverbs_minor = kFirstUverbsMinor + static_cast<uint32_t>(entries_.size());
  entry->state.interface = interface.name;
  entry->state.mtu = interface.mtu;
  set_path_mtu(entry->device, interface);
  entry->state.active = entry->has_carrier = interface.carrier;
  follow_addresses(entry->state.addresses, interface.addresses);
  guids_.insert(entry->device.node_guid);
  present_.push_back(entry.get());
  entries_.push_back(std::move(entry));
}

std::vector<Table::Noticed> Table::update(std::span<const Interface> interfaces) {
  std::vector<Noticed> noticed;
  for (Entry* entry : present_) {
    auto now = std::ranges::find(interfaces, entry->device.ifindex, &Interface::ifindex);
    if (now == interfaces.end()) {
      end(*entry, noticed);
    } else {
      follow(*entry, *now, noticed);
    }
  }
  std::erase_if(present_, [](const Entry* entry) { return entry->state.gone; });
  std::vector<const Interface*> fresh;
  for (const Interface& interface : interfaces) {
    if (interface.up && !interface.addresses.empty() && find(interface.ifindex) == nullptr &&
        core::is_chosen(chosen_, interface.name)) {
      fresh.push_back(&interface);
    }
  }
  std::ranges::sort(fresh, {}, &Interface::ifindex);
  for (const Interface* interface : fresh) add(*interface);
  return noticed;
}

}  // namespace uiw::device
