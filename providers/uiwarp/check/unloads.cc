// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/unloads.h"

#include <link.h>

namespace uiw::check {

uint64_t unloads() {
  uint64_t count = 0;
  // What it says of the first object it says of all.
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<uint64_t*>(to) = info->dlpi_subs;
        return 1;
      },
      &count);
  return count;
}

}  // namespace uiw::check
