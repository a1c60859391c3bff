// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The table that instruments have made, for layers below them that have something to tell.
#pragma once

#include <atomic>

struct uiwarp_verbs;

namespace uiw::core {

// Null: no instrument is there. Thread: any.
inline constinit std::atomic<const uiwarp_verbs*> instrumented{nullptr};

}  // namespace uiw::core
