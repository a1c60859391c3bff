// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::shake {

// The table of --shake in front of `next`; `text` is what UIWARP_SHAKE says. ENOTSUP: it is
// something else. Once in a process.
int make_table(const char* text, const uiwarp_verbs* next, const uiwarp_verbs** table);

}  // namespace uiw::shake
