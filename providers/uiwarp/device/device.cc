// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/device.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "core/log.h"
#include "device/interface.h"

namespace uiw::device {
namespace {

// Read once; lives as long as the process, since pointers into it are handed out everywhere.
constinit std::atomic<const std::vector<Device>*> known_devices{nullptr};
constinit std::mutex reading;

const std::vector<Device>* read_devices() {
  std::vector<Interface> interfaces;
  if (int error = read_interfaces(interfaces); error != 0) {
    core::log(core::LogLevel::kError,
              "cannot list the network interfaces (netlink: %s); no RDMA device is offered",
              strerrordesc_np(error));
  }
  return new (std::nothrow) std::vector<Device>(make_devices(interfaces));
}

// All of 127.0.0.0/8 is the loopback interface's, whatever is configured (RFC 1122
// section 3.2.1.3).
bool is_loopback_address(const in6_addr& address) {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return true;
  return IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127;
}

const Device* loopback() {
  for (const Device& device : devices()) {
    for (const in6_addr& gid : device.gids) {
      if (is_loopback_address(gid)) return &device;
    }
  }
  return nullptr;
}

}  // namespace

std::span<const Device> devices() {
  const std::vector<Device>* known = known_devices.load(std::memory_order_acquire);
  if (known == nullptr) {
    std::lock_guard lock(reading);
    known = known_devices.load(std::memory_order_relaxed);
    if (known == nullptr) {
      known = read_devices();
      if (known == nullptr) return {};
      known_devices.store(known, std::memory_order_release);
    }
  }
  return *known;
}

const Device* find_by_name(const char* name) {
  if (name == nullptr) return nullptr;
  for (const Device& device : devices()) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

const Device* find_by_guid(uint64_t node_guid) {
  for (const Device& device : devices()) {
    if (device.node_guid == node_guid) return &device;
  }
  return nullptr;
}

const Device* find_by_address(const sockaddr_storage& address) {
  in6_addr wanted;
  if (!address_of(address, wanted)) return nullptr;
  if (is_loopback_address(wanted)) return loopback();
  // A link-local address may exist on several interfaces; the scope says which one is meant.
  unsigned scope = 0;
  if (IN6_IS_ADDR_LINKLOCAL(&wanted)) {
    scope = reinterpret_cast<const sockaddr_in6&>(address).sin6_scope_id;
  }
  for (const Device& device : devices()) {
    if (scope != 0 && device.ifindex != scope) continue;
    for (const in6_addr& gid : device.gids) {
      if (std::memcmp(&gid, &wanted, sizeof gid) == 0) return &device;
    }
  }
  return nullptr;
}

}  // namespace uiw::device
