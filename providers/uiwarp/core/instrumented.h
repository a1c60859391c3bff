// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The instruments' table of functions, for lower layers that have something to report.
#pragma once

#include <atomic>

struct uiwarp_verbs;

namespace uiw::core {

// Null: there is no instrument. Thread: any.
inline constinit std::atomic<const uiwarp_verbs*> instrumented{nullptr};

}  // namespace uiw::core
