// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::faults {

// The table of --faults in front of `next`, by the rules of the file `path`. EINVAL: it cannot be
// used, which has been said. Once in a process.
int make_table(const char* path, const uiwarp_verbs* next, const uiwarp_verbs** table);

}  // namespace uiw::faults
