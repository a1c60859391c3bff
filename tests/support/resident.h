// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How much memory this process occupies, for tests that memory goes back to the system.
#pragma once

#include <cstddef>
#include <cstdio>

#include "core/pages.h"

namespace uiw::test {

// Bytes that are resident. 0: not to be measured, because there is no /proc, or because a sanitizer
// keeps what was freed or memory of its own beside it.
inline size_t resident_bytes() {
#if defined(UIW_PAGES_BY_MALLOC) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  unsigned long size = 0, resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file && std::fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
  if (file) std::fclose(file);
  return resident * core::kPage;
#endif
}

}  // namespace uiw::test
