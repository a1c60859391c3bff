// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// While a device is open, the engine follows the network interfaces: it waits for the descriptor on
// which the kernel reports changes and has device/ read it. That calls the observers of changes
// (device::Observer).
#pragma once

#include "engine/engine.h"

namespace uiw::verbs {

// Following begins with the first user and ends with the last. If interfaces cannot be watched,
// devices are only updated when a list of devices is requested. Thread: any but the engine's,
// without a lock that engine code takes.
void follow_interfaces(engine::Engine& engine);
void leave_interfaces(engine::Engine& engine);

}  // namespace uiw::verbs
