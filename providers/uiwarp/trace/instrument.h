// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::trace {

// The table of --trace in front of `next`; `options` are the text of UIWARP_TRACE. ENOTSUP: they
// are not understood. Once in a process.
int make_table(const char* options, const uiwarp_verbs* next, const uiwarp_verbs** table);

}  // namespace uiw::trace
