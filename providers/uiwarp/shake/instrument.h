// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::shake {

// The table of --shake in front of `next`; `seed` is a number in decimal digits. ENOTSUP: it is
// none. Once in a process.
int make_table(const char* seed, const uiwarp_verbs* next, const uiwarp_verbs** table);

}  // namespace uiw::shake
