// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// While a device is open the engine follows the network interfaces: it waits for the descriptor on
// which the kernel reports changes and has device/ read it. Observers of changes are called from
// there (device::Observer).
#pragma once

#include "engine/engine.h"

namespace uiw::verbs {

// Begins with the first user and ends with the last. Where nothing can be watched, devices stay as
// they are until a list of them is asked for. Thread: any but the engine's, with no lock held
// that engine code takes.
void follow_interfaces(engine::Engine& engine);
void leave_interfaces(engine::Engine& engine);

}  // namespace uiw::verbs
