// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>

namespace uiw::verbs {

// How many contexts this process has that may contain objects. Thread: any.
uint32_t open_contexts();

}  // namespace uiw::verbs
