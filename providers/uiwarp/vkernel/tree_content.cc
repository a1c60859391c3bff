// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/tree_content.h"

#include <cstdio>

#include "device/gid_table.h"
#include "device/rate.h"
#include "vkernel/identity.h"
#include "vkernel/port_counters.h"

namespace uiw::vkernel {
namespace {

using device::Device;
using device::Face;
using device::State;

class Builder {
 public:
  void directory(const std::string& path) {
    entries_.push_back({TreeEntry::Kind::kDirectory, path, {}});
  }
  // A file as the kernel writes it: one line.
  void file(const std::string& path, const std::string& line) {
    entries_.push_back({TreeEntry::Kind::kFile, path, line + "\n"});
  }
  void empty_file(const std::string& path) {
    entries_.push_back({TreeEntry::Kind::kFile, path, {}});
  }
  void link(const std::string& path, const std::string& target) {
    entries_.push_back({TreeEntry::Kind::kLink, path, target});
  }
  std::vector<TreeEntry> take() { return std::move(entries_); }

 private:
  std::vector<TreeEntry> entries_;
};

std::string guid_text(uint64_t guid) {
  char out[20];
  std::snprintf(out, sizeof out, "%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48),
                static_cast<unsigned>(guid >> 32 & 0xffff),
                static_cast<unsigned>(guid >> 16 & 0xffff), static_cast<unsigned>(guid & 0xffff));
  return out;
}

// All eight groups with four digits, as the kernel prints a GID.
std::string gid_text(const in6_addr& gid) {
  std::string out;
  for (int i = 0; i < 16; i += 2) {
    char group[6];
    std::snprintf(group, sizeof group, "%s%02x%02x", i == 0 ? "" : ":", gid.s6_addr[i],
                  gid.s6_addr[i + 1]);
    out += group;
  }
  return out;
}

void add_port(Builder& tree, const std::string& port, const State& state, const Face& face) {
  tree.directory(port);
  tree.file(port + "/state", state.active ? "4: ACTIVE" : "1: DOWN");
  tree.file(port + "/phys_state", state.active ? "5: LinkUp" : "3: Disabled");
  tree.file(port + "/link_layer", "Ethernet");
  tree.file(port + "/rate", device::rate_of(state).text);
  tree.file(port + "/lid", "0x0");
  tree.file(port + "/lid_mask_count", "0");
  tree.file(port + "/sm_lid", "0x0");
  tree.file(port + "/sm_sl", "0");
  tree.file(port + "/cap_mask", "0x00010000");

  tree.directory(port + "/pkeys");
  tree.file(port + "/pkeys/0", "0xffff");

  tree.directory(port + "/gids");
  tree.directory(port + "/gid_attrs");
  tree.directory(port + "/gid_attrs/types");
  tree.directory(port + "/gid_attrs/ndevs");
  for (uint32_t i = 0; const auto gid = device::gid_at(state, face, i); ++i) {
    const std::string index = "/" + std::to_string(i);
    tree.file(port + "/gids" + index, gid_text(gid->address));
    tree.file(port + "/gid_attrs/types" + index, gid->type);
    if (gid->is_free()) continue;
    tree.file(port + "/gid_attrs/ndevs" + index, state.interface);
  }
  tree.directory(port + "/counters");
  tree.directory(port + "/hw_counters");
  // Without a number: who opens them by their whole path gets what it is then (port_counters.h).
  for (const PortCounter& counter : port_counters()) tree.empty_file(port + "/" + counter.path);
}

void add_device(Builder& tree, const Device& device, const State& state, const Face& face) {
  const std::string base = "sys/class/infiniband/" + device.name;
  tree.directory(base);
  tree.file(base + "/node_type", face.node_type);
  tree.file(base + "/node_guid", guid_text(device.node_guid));
  tree.file(base + "/sys_image_guid", guid_text(device.node_guid));
  tree.file(base + "/node_desc", "uiwarp " + state.interface);
  tree.file(base + "/fw_ver", kFirmwareVersion);
  tree.file(base + "/hw_rev", "0");
  tree.file(base + "/hca_type", "uiwarp");
  tree.file(base + "/board_id", "uiwarp");
  tree.directory(base + "/device");
  tree.directory(base + "/device/net");
  tree.directory(base + "/device/net/" + state.interface);
  tree.directory(base + "/ports");
  add_port(tree, base + "/ports/1", state, face);
}

void add_uverbs(Builder& tree, const Device& device) {
  const std::string name = "uverbs" + std::to_string(device.uverbs_minor);
  const std::string base = "sys/class/infiniband_verbs/" + name;
  tree.directory(base);
  tree.file(base + "/ibdev", device.name);
  // libibverbs compares the st_rdev of the command descriptor with this.
  const CharacterDevice number = uverbs_device(device.uverbs_minor);
  tree.file(base + "/dev", std::to_string(number.major) + ":" + std::to_string(number.minor));
  tree.file(base + "/abi_version", std::to_string(number.abi));
  tree.link("dev/infiniband/" + name, "/dev/null");
}

}  // namespace

std::vector<TreeEntry> tree_content(std::span<const device::Listed> devices, const Face& face) {
  Builder tree;
  for (const char* path : {"sys", "sys/class", "sys/class/infiniband", "sys/class/infiniband_verbs",
                           "sys/class/misc", "sys/class/misc/rdma_cm", "dev", "dev/infiniband"}) {
    tree.directory(path);
  }
  tree.file("sys/class/infiniband_verbs/abi_version", "6");
  tree.file("sys/class/misc/rdma_cm/abi_version", std::to_string(kRdmaCmDevice.abi));
  // stat() sees a character device; open() never comes here (paths.h).
  tree.link("dev/infiniband/rdma_cm", "/dev/null");
  // tmpfs lists what was made last first: so libibverbs, when it gets no netlink socket, finds the
  // devices in the same order as with one.
  for (auto listed = devices.rbegin(); listed != devices.rend(); ++listed) {
    add_device(tree, *listed->device, listed->state, face);
    add_uverbs(tree, *listed->device);
  }
  return tree.take();
}

std::string tree_hash(std::span<const TreeEntry> entries) {
  uint64_t h = 0xcbf29ce484222325;  // FNV-1a
  auto mix = [&h](uint8_t octet) { h = (h ^ octet) * 0x100000001b3; };
  for (const TreeEntry& entry : entries) {
    mix(static_cast<uint8_t>(entry.kind));
    for (const std::string* text : {&entry.path, &entry.content}) {
      for (char c : *text) mix(static_cast<uint8_t>(c));
      mix(0);
    }
  }
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}

}  // namespace uiw::vkernel
