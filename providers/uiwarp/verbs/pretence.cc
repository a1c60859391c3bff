// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What instruments let happen to devices.
#include <cerrno>
#include <cstring>

#include "device/device.h"
#include "uiwarp/uiwarp-abi.h"

using namespace uiw;

namespace {

// Of each device that `name` means.
template <class Visit>
int each(const char* name, Visit visit) {
  bool any = false;
  for (const device::Listed& listed : device::devices()) {
    if (std::strcmp(name, "*") != 0 && listed.device->name != name) continue;
    any = true;
    visit(*listed.device);
  }
  return any ? 0 : ENODEV;
}

bool change_for(ibv_event_type event, device::Change& change) {
  switch (event) {
    case IBV_EVENT_DEVICE_FATAL:
      return change = device::Change::kFatal, true;
    case IBV_EVENT_PORT_ACTIVE:
      return change = device::Change::kPortActive, true;
    case IBV_EVENT_PORT_ERR:
      return change = device::Change::kPortDown, true;
    case IBV_EVENT_LID_CHANGE:
      return change = device::Change::kLids, true;
    case IBV_EVENT_PKEY_CHANGE:
      return change = device::Change::kPkeys, true;
    case IBV_EVENT_SM_CHANGE:
      return change = device::Change::kSubnetManager, true;
    case IBV_EVENT_CLIENT_REREGISTER:
      return change = device::Change::kReregister, true;
    case IBV_EVENT_GID_CHANGE:
      return change = device::Change::kGids, true;
    default:
      return false;
  }
}

}  // namespace

int uiwarp_device_pretend(const char* device, ibv_event_type event) {
  device::Change change;
  if (!change_for(event, change)) return EINVAL;
  return each(device, [&](const device::Device& one) { device::pretend(one, change); });
}

int uiwarp_device_hold_down(const char* device, int down) {
  return each(device, [&](const device::Device& one) { device::hold_down(one, down != 0); });
}

int uiwarp_device_shift_gids(const char* device) {
  return each(device, [](const device::Device& one) { device::shift_gids(one); });
}
