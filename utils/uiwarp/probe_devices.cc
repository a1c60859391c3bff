// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "probe.h"

namespace uiw::probe {
namespace {

constexpr uint8_t kPort = 1;  // the only one that uiwarp's have

// The network interface behind a device, as sysfs tells it; "-" when it does not.
std::string interface_of(const ibv_device* device) {
  std::string name = "-";
  const std::string path = std::string(device->ibdev_path) + "/device/net";
  if (DIR* directory = opendir(path.c_str())) {
    while (const dirent* entry = readdir(directory)) {
      if (entry->d_name[0] != '.') name = entry->d_name;
    }
    closedir(directory);
  }
  // uiwarp names a device after its interface.
  if (name == "-" && strncmp(ibv_get_device_name(const_cast<ibv_device*>(device)), "uiw_", 4) == 0)
    name = ibv_get_device_name(const_cast<ibv_device*>(device)) + 4;
  return name;
}

// Of a network interface, in bytes; 0 when the kernel does not tell. Not by /sys, which shows other
// interfaces in a network namespace that was entered alone.
int mtu_of(const std::string& interface) {
  ifreq request = {};
  if (interface.size() >= sizeof request.ifr_name) return 0;
  interface.copy(request.ifr_name, interface.size());
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  const bool is_told = ioctl(fd, SIOCGIFMTU, &request) == 0;
  close(fd);
  return is_told ? request.ifr_mtu : 0;
}

int bytes_of(ibv_mtu mtu) {
  return 128 << mtu;
}

// As what the device shows itself.
const char* kind_of(const ibv_device* device, const ibv_port_attr& port) {
  if (device->transport_type == IBV_TRANSPORT_IWARP) return "iWARP";
  return port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

const char* type_of(const ibv_gid_entry& gid) {
  switch (gid.gid_type) {
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "";
  }
}

struct Gid {
  uint32_t index;
  std::string address;  // IPv4-mapped ones as IPv4
  const char* type;     // "": of iWARP's, which says nothing
};

struct Found {
  std::string name, interface, guid;
  std::string state;  // of the port; "unopened", "no_port"
  int error = 0;      // errno: why it is one of the last two
  std::string why;    // the same in words
  const char* kind = "-";
  int mtu = 0;         // of the interface, in bytes; 0: not known
  int active_mtu = 0;  // of the port, in bytes

  bool is_usable() const { return error == 0; }
  std::vector<Gid> gids;
};

// Those that hold an address, by the index that programs want to be told (often -g).
std::vector<Gid> gids_of(ibv_context* context, const ibv_port_attr& port) {
  std::vector<Gid> gids;
  const bool typed = context->device->transport_type != IBV_TRANSPORT_IWARP;
  for (uint32_t i = 0; i < static_cast<uint32_t>(port.gid_tbl_len); i++) {
    ibv_gid_entry gid = {};
    if (ibv_query_gid_ex(context, kPort, i, &gid, 0) != 0) continue;  // free
    char text[INET6_ADDRSTRLEN];
    if (IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(gid.gid.raw)))
      inet_ntop(AF_INET, gid.gid.raw + 12, text, sizeof text);
    else
      inet_ntop(AF_INET6, gid.gid.raw, text, sizeof text);
    gids.push_back({i, text, typed ? type_of(gid) : ""});
  }
  return gids;
}

Found look_at(ibv_device* device) {
  Found found;
  found.name = ibv_get_device_name(device);
  found.interface = interface_of(device);
  const uint64_t guid = be64toh(ibv_get_device_guid(device));
  char text[24];
  snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48),
           static_cast<unsigned>(guid >> 32) & 0xffff, static_cast<unsigned>(guid >> 16) & 0xffff,
           static_cast<unsigned>(guid) & 0xffff);
  found.guid = text;
  found.mtu = mtu_of(found.interface);
  errno = 0;
  ibv_context* context = ibv_open_device(device);
  if (!context) {
    // Not all providers say why.
    found.error = errno ? errno : EIO;
    found.state = "unopened";
    found.why = std::string("cannot open: ") + strerror(found.error);
    return found;
  }
  ibv_port_attr port = {};
  found.error = ibv_query_port(context, kPort, &port);
  if (found.is_usable()) {
    found.state = ibv_port_state_str(port.state);
    found.active_mtu = bytes_of(port.active_mtu);
    found.kind = kind_of(device, port);
    found.gids = gids_of(context, port);
  } else {
    found.state = "no_port";
    found.why = std::string("no port: ") + strerror(found.error);
  }
  ibv_close_device(context);
  return found;
}

void print_text(const std::vector<Found>& devices) {
  size_t name = 16, interface = 14;
  for (const Found& one : devices) {
    name = std::max(name, one.name.size());
    interface = std::max(interface, one.interface.size());
  }
  const auto line = [&](const char* a, const char* b, const char* c, const char* d, const char* e) {
    printf("%-*s %-*s %-10s %-20s %s\n", static_cast<int>(name), a, static_cast<int>(interface), b,
           c, d, e);
  };
  line("device", "interface", "as", "GUID", "state");
  for (const Found& one : devices) {
    line(one.name.c_str(), one.interface.c_str(), one.kind, one.guid.c_str(),
         one.is_usable() ? one.state.c_str() : one.why.c_str());
    for (const Gid& gid : one.gids)
      printf("  GID %-2u %s%s%s\n", gid.index, gid.address.c_str(), *gid.type ? "  " : "",
             gid.type);
  }
}

nlohmann::ordered_json json_of(const Found& one) {
  nlohmann::ordered_json gids = nlohmann::ordered_json::array();
  for (const Gid& gid : one.gids) {
    nlohmann::ordered_json object = {{"index", gid.index}, {"address", gid.address}};
    if (*gid.type) object["type"] = gid.type;
    gids.push_back(std::move(object));
  }
  nlohmann::ordered_json object = {{"device", one.name}, {"interface", one.interface},
                                   {"as", one.kind},     {"guid", one.guid},
                                   {"port", kPort},      {"state", one.state}};
  if (one.is_usable()) {
    object["active_mtu"] = one.active_mtu;
  } else {
    const char* const name = strerrorname_np(one.error);
    object["errno"] = name ? name : std::to_string(one.error);
    object["why"] = one.why;
  }
  if (one.mtu) object["mtu"] = one.mtu;
  object["gids"] = std::move(gids);
  return object;
}

void print_json(const std::vector<Found>& devices) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Found& one : devices) list.push_back(json_of(one));
  printf("%s\n", list.dump().c_str());
}

}  // namespace

int list_devices(Form form) {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  const int error = errno;
  std::vector<Found> found;
  for (int i = 0; i < count; i++) found.push_back(look_at(devices[i]));
  if (devices) ibv_free_device_list(devices);
  if (form == Form::kJson)
    print_json(found);
  else if (!found.empty())
    print_text(found);
  if (found.empty())
    fprintf(stderr, "No RDMA device is visible%s%s.\n", devices ? "" : ": ",
            devices ? "" : strerror(error));
  return !found.empty() && std::ranges::all_of(found, &Found::is_usable) ? 0 : 1;
}

}  // namespace uiw::probe
