// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// From network interfaces to RDMA devices, and from one look at the interfaces to the next: naming,
// GUIDs, GIDs, what has changed. Private to device/. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "device/device.h"
#include "device/interface.h"

namespace uiw::device {

// The kernel numbers real uverbs devices from 0 upwards: no host has so many that ours clash.
inline constexpr uint32_t kFirstUverbsMinor = 250;

class Table {
 public:
  struct Entry {
    Device device;
    State state;
    bool has_carrier = false;  // its interface is up, with a carrier
    unsigned held_by = 0;      // a bit of each Holder by whom its port is down all the same
  };
  struct Noticed {
    const Device* device;
    Change change;
    bool operator==(const Noticed&) const = default;
  };

  // `chosen`: of which interfaces there are devices (core/device_choice.h); its text stays.
  explicit Table(std::string_view chosen = "") : chosen_(chosen) {}

  // All interfaces as they are now. Those that are up with an address, chosen and without a device
  // get one, in order of ifindex, which is what a device knows its interface by.
  std::vector<Noticed> update(std::span<const Interface> interfaces);

  // As if the cable of its interface were pulled, until all who hold it have let it go again.
  std::vector<Noticed> hold_down(const Device& device, Holder by, bool down);
  // Its addresses move one slot up; the first one is free then.
  std::vector<Noticed> shift_addresses(const Device& device);

  // Those that there are, in the order they came. Nothing but these is looked through: a host with
  // containers has had thousands.
  std::span<Entry* const> present() const { return present_; }
  // With those that have gone, some 200 bytes each: pointers to devices stay valid.
  std::span<const std::unique_ptr<Entry>> entries() const { return entries_; }
  uint64_t version() const { return version_; }

 private:
  Entry* find(unsigned ifindex);
  void follow(Entry& entry, const Interface& interface, std::vector<Noticed>& noticed);
  Entry* find(const Device& device);
  void follow_port(Entry& entry, std::vector<Noticed>& noticed);
  void end(Entry& entry, std::vector<Noticed>& noticed);
  void add(const Interface& interface);
  uint64_t choose_guid(const Interface& interface) const;
  std::string choose_name(const Interface& interface) const;

  const std::string_view chosen_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> present_;
  std::unordered_set<uint64_t> guids_;  // of all entries
  uint64_t version_ = 0;
};

}  // namespace uiw::device
