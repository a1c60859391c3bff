// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// For a sentence shared by several calls or reasons: it is logged once for each of them.
#pragma once

#include "core/explain.h"

namespace uiw::core {

// Like refuse(), but logged once for each `of`, a literal, which may be one of the arguments.
int refuse_of(const char* of, Told& told, int error, const char* sentence, ...)
    __attribute__((format(printf, 4, 5)));
// Like Told::first(), for `sentence` and `of` together.
bool first_of(const char* of, Told& told, const char* sentence);

}  // namespace uiw::core
