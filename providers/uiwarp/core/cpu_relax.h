// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a processor is told that waits in a loop for what another one writes.
#pragma once

namespace uiw::core {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // "yield" does nothing on most of them
#else
  __asm__ volatile("" ::: "memory");
#endif
}

}  // namespace uiw::core
