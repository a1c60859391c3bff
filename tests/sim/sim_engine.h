// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// engine::Engine without a thread: the simulated suite is linked to this one. The test decides when
// it has its turn.
#pragma once

#include "engine/engine.h"

namespace uiw::test {

// One thing that `engine` can do at this moment, by chance of the kernel's seed. False: it has
// nothing to do, or is in the middle of something further up the stack.
bool take_turn(engine::Engine& engine);
// When its next timer expires.
core::Nanoseconds next_deadline(engine::Engine& engine);

}  // namespace uiw::test
