// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::check {

// The table of --check in front of `next`; `options` are UIWARP_CHECK's. ENOTSUP: there are no such
// options; EINVAL: a file that they name cannot be used, which has been said. Once in a process.
int make_table(const char* options, const uiwarp_verbs* next, const uiwarp_verbs** table);

}  // namespace uiw::check
