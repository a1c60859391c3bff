// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/valgrind.h"

#include <link.h>

#include <cstring>

namespace uiw::core {
namespace {

bool is_loaded(const char* name) {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void* wanted) {
               return strstr(info->dlpi_name, static_cast<const char*>(wanted)) != nullptr ? 1 : 0;
             },
             const_cast<char*>(name)) != 0;
}

}  // namespace

bool under_valgrind() {
  // Valgrind preloads this one into each program, for all of its tools.
  return is_loaded("/vgpreload_core-");
}

bool under_memcheck() {
  static const bool loaded = is_loaded("/vgpreload_memcheck-");
  return loaded;
}

}  // namespace uiw::core
