// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A sentence that several calls, or several reasons, have in common: each of them says it once.
#pragma once

#include "core/explain.h"

namespace uiw::core {

// As refuse(); it is said for each `of`, a literal, which may be one of the arguments.
int refuse_of(const char* of, Told& told, int error, const char* sentence, ...)
    __attribute__((format(printf, 4, 5)));
// Whether it is to be said now: as Told::first().
bool first_of(const char* of, Told& told, const char* sentence);

}  // namespace uiw::core
