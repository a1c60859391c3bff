// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "core/settings.h"

namespace uiw::tool {

// Prints every setting with its type, default, value now and what it does.
void print_settings();

// Prints doc/settings.md.
void print_settings_markdown();

}  // namespace uiw::tool
