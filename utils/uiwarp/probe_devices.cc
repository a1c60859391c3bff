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

// As what the device shows itself.
const char* kind_of(const ibv_device* device, const ibv_port_attr& port) {
  if (device->transport_type == IBV_TRANSPORT_IWARP) return "iWARP";
  return port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

const char* type_of(const ibv_gid_entry& gid) {
  switch (gid.gid_type) {
    case IBV_GID_TYPE_ROCE_V1:
      return "  RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "  RoCE v2";
    default:
      return "";
  }
}

// Those that hold an address, IPv4-mapped ones as IPv4, by the index that programs want to be told
// (often -g), and with their type, which of iWARP's says nothing.
void print_gids(ibv_context* context, const ibv_port_attr& port) {
  const bool typed = context->device->transport_type != IBV_TRANSPORT_IWARP;
  for (uint32_t i = 0; i < static_cast<uint32_t>(port.gid_tbl_len); i++) {
    ibv_gid_entry gid = {};
    if (ibv_query_gid_ex(context, 1, i, &gid, 0) != 0) continue;  // free
    char text[INET6_ADDRSTRLEN];
    if (IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(gid.gid.raw)))
      inet_ntop(AF_INET, gid.gid.raw + 12, text, sizeof text);
    else
      inet_ntop(AF_INET6, gid.gid.raw, text, sizeof text);
    printf("  GID %-2u %s%s\n", i, text, typed ? type_of(gid) : "");
  }
}

void print_device(ibv_device* device) {
  const uint64_t guid = be64toh(ibv_get_device_guid(device));
  char guid_text[24];
  snprintf(guid_text, sizeof guid_text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48),
           static_cast<unsigned>(guid >> 32) & 0xffff, static_cast<unsigned>(guid >> 16) & 0xffff,
           static_cast<unsigned>(guid) & 0xffff);
  std::string state;
  const char* kind = "-";
  ibv_port_attr port = {};
  ibv_context* context = ibv_open_device(device);
  if (!context) {
    state = std::string("cannot open: ") + strerror(errno);
  } else {
    const int error = ibv_query_port(context, 1, &port);
    state = error ? std::string("no port: ") + strerror(error) : ibv_port_state_str(port.state);
    if (!error) kind = kind_of(device, port);
  }
  printf("%-16s %-14s %-10s %-20s %s\n", ibv_get_device_name(device), interface_of(device).c_str(),
         kind, guid_text, state.c_str());
  if (!context) return;
  print_gids(context, port);
  ibv_close_device(context);
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
  printf("%-16s %-14s %-10s %-20s %s\n", "device", "interface", "as", "GUID", "state");
  for (int i = 0; i < count; i++) print_device(devices[i]);
  ibv_free_device_list(devices);
  return 0;
}

}  // namespace uiw::probe
