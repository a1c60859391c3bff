// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/valgrind.h"

#include <link.h>

#include <atomic>
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
  enum : int { kUnknown, kNo, kYes };
  static constinit std::atomic<int> known{kUnknown};
  int now = known.load(std::memory_order_relaxed);
  if (now == kUnknown) {
    now = is_loaded("/vgpreload_memcheck-") ? kYes : kNo;
    known.store(now, std::memory_order_relaxed);
  }
  return now == kYes;
}

}  // namespace uiw::core
