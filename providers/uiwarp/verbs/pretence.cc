// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Events and states of devices that instruments pretend.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "device/device.h"
#include "uiwarp/uiwarp-abi.h"
#include "verbs/device_events.h"

using namespace uiw;

namespace {

constexpr char kAll[] = "*";

// Calls visit() for each device that `name` matches; "*" matches all.
template <class Visit>
int each(const char* name, Visit visit) {
  bool any = false;
  for (const device::Listed& listed : device::devices()) {
    if (std::strcmp(name, kAll) != 0 && listed.device->name != name) continue;
    any = true;
    visit(*listed.device);
  }
  return any ? 0 : ENODEV;
}

}  // namespace

int uiwarp_device_pretend(const char* device, ibv_event_type event) {
  const auto told = std::ranges::find(verbs::kDeviceEvents, event, &verbs::DeviceEvent::type);
  if (told == std::end(verbs::kDeviceEvents)) return EINVAL;
  return each(device, [&](const device::Device& one) { device::pretend(one, told->change); });
}

int uiwarp_device_hold_down(const char* device, int down) {
  const auto by =
      std::strcmp(device, kAll) == 0 ? device::Holder::kWithAll : device::Holder::kByName;
  return each(device, [&](const device::Device& one) { device::hold_down(one, by, down != 0); });
}

int uiwarp_device_shift_gids(const char* device) {
  return each(device, [](const device::Device& one) { device::shift_gids(one); });
}
