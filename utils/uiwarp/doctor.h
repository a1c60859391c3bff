// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "layout.h"
#include "report.h"

namespace uiw::tool {

// Checks everything a user can get wrong; 0 when nothing failed, else 1.
int doctor(const Layout& layout, ReportAs as);

}  // namespace uiw::tool
