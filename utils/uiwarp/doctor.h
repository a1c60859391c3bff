// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "layout.h"

namespace uiw::tool {

// Checks everything a user can get wrong, one line each; 0 when nothing failed, else 1.
int doctor(const Layout& layout);

}  // namespace uiw::tool
