// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Our own threads, of which the program does not know: they take no signals, and their names
// distinguish them from the program's.
#pragma once

#include <pthread.h>

#include <string_view>

namespace uiw::core {

enum class OwnThread {
  kEngine,
  kCheck,   // watches what the program waits for
  kFaults,  // carries out timed rules
  kLast,    // core/last_thread.h
};

// Starts a thread that calls `run(argument)`. `thread`: for joining it; null: detached. 0 or a
// positive errno. Thread: any.
int start_thread(OwnThread which, void (*run)(void*), void* argument, pthread_t* thread = nullptr);

// Whether a thread of this name, as /proc/PID/task/TID/comm has it, is one of these.
bool is_own_thread(std::string_view name);

}  // namespace uiw::core
