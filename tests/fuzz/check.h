// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// CHECK: ends the fuzz target, which then reports the input.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(expression)                                                                 \
  do {                                                                                    \
    if (!(expression)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #expression); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
