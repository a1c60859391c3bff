// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which asynchronous event reports which change of a device.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <iterator>

#include "device/device.h"

namespace uiw::verbs {

struct DeviceEvent {
  ibv_event_type type;
  device::Change change;
  bool is_of_port;
};

// If several changes raise one event, the first of them is what pretending that event means.
inline constexpr DeviceEvent kDeviceEvents[] = {
    {IBV_EVENT_PORT_ACTIVE, device::Change::kPortActive, true},
    {IBV_EVENT_PORT_ERR, device::Change::kPortDown, true},
    {IBV_EVENT_GID_CHANGE, device::Change::kGids, true},
    {IBV_EVENT_LID_CHANGE, device::Change::kLids, true},
    {IBV_EVENT_PKEY_CHANGE, device::Change::kPkeys, true},
    {IBV_EVENT_SM_CHANGE, device::Change::kSubnetManager, true},
    {IBV_EVENT_CLIENT_REREGISTER, device::Change::kReregister, true},
    {IBV_EVENT_DEVICE_FATAL, device::Change::kFatal, false},
    {IBV_EVENT_DEVICE_FATAL, device::Change::kGone, false},
};
static_assert(std::size(kDeviceEvents) == static_cast<size_t>(device::Change::kReregister) + 1);

}  // namespace uiw::verbs
