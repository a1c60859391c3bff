// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "probe.h"

namespace uiw::probe {
namespace {

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

// GIDs that hold an address, IPv4-mapped ones as IPv4.
std::string addresses_of(ibv_context* context, const ibv_port_attr& port) {
  std::string text;
  for (int i = 0; i < port.gid_tbl_len; i++) {
    ibv_gid gid = {};
    if (ibv_query_gid(context, 1, i, &gid) != 0) break;
    const in6_addr* address = reinterpret_cast<const in6_addr*>(gid.raw);
    if (IN6_IS_ADDR_UNSPECIFIED(address)) continue;
    char buffer[INET6_ADDRSTRLEN];
    if (IN6_IS_ADDR_V4MAPPED(address))
      inet_ntop(AF_INET, gid.raw + 12, buffer, sizeof buffer);
    else
      inet_ntop(AF_INET6, gid.raw, buffer, sizeof buffer);
    if (!text.empty()) text += ", ";
    text += buffer;
  }
  return text.empty() ? "-" : text;
}

void print_device(ibv_device* device) {
  const uint64_t guid = be64toh(ibv_get_device_guid(device));
  char guid_text[24];
  snprintf(guid_text, sizeof guid_text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48),
           static_cast<unsigned>(guid >> 32) & 0xffff, static_cast<unsigned>(guid >> 16) & 0xffff,
           static_cast<unsigned>(guid) & 0xffff);
  std::string state, addresses = "-";
  ibv_context* context = ibv_open_device(device);
  if (!context) {
    state = std::string("cannot open: ") + strerror(errno);
  } else {
    ibv_port_attr port = {};
    const int error = ibv_query_port(context, 1, &port);
    state = error ? std::string("no port: ") + strerror(error) : ibv_port_state_str(port.state);
    if (!error) addresses = addresses_of(context, port);
    ibv_close_device(context);
  }
  printf("%-16s %-14s %-20s %-12s %s\n", ibv_get_device_name(device), interface_of(device).c_str(),
         guid_text, state.c_str(), addresses.c_str());
}

}  // namespace

int list_devices() {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  if (!devices || count == 0) {
    fprintf(stderr, "No RDMA device is visible%s%s.\n", devices ? "" : ": ",
            devices ? "" : strerror(errno));
    if (devices) ibv_free_device_list(devices);
    return 1;
  }
  printf("%-16s %-14s %-20s %-12s %s\n", "device", "interface", "GUID", "state", "addresses");
  for (int i = 0; i < count; i++) print_device(devices[i]);
  ibv_free_device_list(devices);
  return 0;
}

}  // namespace uiw::probe
