// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is to happen at a time, and not on a thread of the program's.
#pragma once

#include <functional>

#include "core/clock.h"

namespace uiw::faults {

// `what` runs at `when` (core::now()) or soon after, on a thread that there is as soon as it is
// needed: one after the other, in the order of their times, and of the same time in the order of
// the calls. In a fork nothing of the parent's happens. False: there is no thread, which has been
// said. Thread: any.
bool later(core::Nanoseconds when, std::function<void()> what);

}  // namespace uiw::faults
