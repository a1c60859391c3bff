// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// For what wants more stack than a program's thread may have: PTHREAD_STACK_MIN is 16 KiB.
#pragma once

#include <cstddef>

namespace uiw::core {

// What is left of the calling thread's stack, in bytes; 0 when that is not known.
size_t stack_left();

// Both wait for run(argument) and say false when there is no such stack, of `size` bytes.
// On a thread of its own, which gets no signals. The caller holds no lock that `run` wants, the
// loader's neither: not within dlopen().
bool run_on_own_thread(size_t size, void (*run)(void*), void* argument);
// On the calling thread. Its locks stay its own.
bool run_on_own_stack(size_t size, void (*run)(void*), void* argument);

// On the calling thread: on a stack of its own, of `size` bytes, where less than `enough` is known
// to be left of the thread's and there is memory for it; else as it is.
void run_with_enough_stack(size_t enough, size_t size, void (*run)(void*), void* argument);

}  // namespace uiw::core
