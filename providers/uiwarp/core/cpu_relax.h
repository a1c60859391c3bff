// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A hint to the processor inside a loop that waits for another processor's store.
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
