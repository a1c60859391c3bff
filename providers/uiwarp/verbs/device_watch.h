// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// While a device is open the engine follows the network interfaces: it waits for the descriptor on
// which the kernel tells of changes and has device/ read it. Who wants to hear of changes is told
// from there (device::Observer).
#pragma once

#include "engine/engine.h"

namespace uiw::verbs {

// Begins with the first user and ends with the last. Where nothing can be watched, devices stay as
// they are until somebody asks for a list of them. Thread: any but the engine's, with no lock held
// that engine code takes.
void follow_interfaces(engine::Engine& engine);
void leave_interfaces(engine::Engine& engine);

}  // namespace uiw::verbs
