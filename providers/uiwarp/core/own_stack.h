// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Runs code that needs more stack than a program's thread may have: PTHREAD_STACK_MIN is 16 KiB.
#pragma once

#include <cstddef>

namespace uiw::core {

// How many bytes of the calling thread's stack are left; 0 when that is not known.
size_t stack_left();

// Both call run(argument) and wait for it. False when no stack of `size` bytes can be had. This one
// uses a thread of its own, which gets no signals. The caller must hold no lock that `run` needs,
// including the loader's: do not call it within dlopen().
bool run_on_own_thread(size_t size, void (*run)(void*), void* argument);
// This one uses the calling thread, which keeps its locks.
bool run_on_own_stack(size_t size, void (*run)(void*), void* argument);

// Calls run(argument) on the calling thread. Uses a separate stack of `size` bytes if less than
// `enough` is known to be left of the thread's own and there is memory.
void run_with_enough_stack(size_t enough, size_t size, void (*run)(void*), void* argument);

}  // namespace uiw::core
