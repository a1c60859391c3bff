// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/valgrind.h"

#include <link.h>

#include <atomic>
#include <cstring>

namespace uiw::core {
namespace {

// Later values say more.
enum : int { kUnknown, kNo, kSomeTool, kMemcheck };

constinit std::atomic<int> known{kUnknown};

int what_is_loaded() {
  int found = kNo;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        int& so_far = *static_cast<int*>(to);
        // Valgrind preloads the one into each program, for all of its tools, the other for this.
        if (strstr(info->dlpi_name, "/vgpreload_memcheck-") != nullptr)
          so_far = kMemcheck;
        else if (so_far == kNo && strstr(info->dlpi_name, "/vgpreload_core-") != nullptr)
          so_far = kSomeTool;
        return 0;
      },
      &found);
  return found;
}

int tool() {
  int now = known.load(std::memory_order_relaxed);
  // Constructors that run before ours allocate.
  if (now == kUnknown) {
    now = what_is_loaded();
    known.store(now, std::memory_order_relaxed);
  }
  return now;
}

// While dl_iterate_phdr() calls back, it holds a lock of the C library's that a fork leaves as it
// is: had one of our threads been there, the child's next call would wait for ever. So none of them
// asks.
[[gnu::constructor]] void look() {
  tool();
}

}  // namespace

bool under_valgrind() {
  return tool() >= kSomeTool;
}

bool under_memcheck() {
  return tool() == kMemcheck;
}

}  // namespace uiw::core
