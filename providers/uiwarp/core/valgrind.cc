// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/valgrind.h"

#include <link.h>

#include <cstring>

namespace uiw::core {

bool under_valgrind() {
  // Valgrind preloads this one into each program, for all of its tools.
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void*) {
               return strstr(info->dlpi_name, "/vgpreload_core-") != nullptr ? 1 : 0;
             },
             nullptr) != 0;
}

}  // namespace uiw::core
