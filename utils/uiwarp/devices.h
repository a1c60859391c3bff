// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp devices`: what a program sees under `uiwarp run`, told by one that is run so.
#pragma once

#include "layout.h"

namespace uiw::tool {

enum class DevicesAs { kText, kJson };

// 0; 1 when there is no device or one cannot be used; 125 when uiwarp is incomplete.
int devices(const Layout& layout, DevicesAs as);

}  // namespace uiw::tool
