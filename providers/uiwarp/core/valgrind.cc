// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/valgrind.h"

#include <link.h>

#include <atomic>
#include <cstring>

namespace uiw::core {
namespace {

// Later values are more specific.
enum : int { kUnknown, kNo, kSomeTool, kMemcheck };

constinit std::atomic<int> known{kUnknown};

int what_is_loaded() {
  int found = kNo;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        int& so_far = *static_cast<int*>(to);
        // Valgrind preloads vgpreload_core for all tools, vgpreload_memcheck for memcheck.
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
  // Not done yet: constructors that run before ours allocate.
  if (now == kUnknown) {
    now = what_is_loaded();
    known.store(now, std::memory_order_relaxed);
  }
  return now;
}

// While dl_iterate_phdr() calls back, it holds a lock of the C library that a fork leaves as it is.
// If one of our threads were inside during a fork, the child's next call would wait forever. So our
// threads never call it: this constructor does.
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
