// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Threads of ours, in a program that knows nothing of them: they take no signals, and have names by
// which they are told from the program's.
#pragma once

#include <pthread.h>

#include <string_view>

namespace uiw::core {

enum class OwnThread {
  kEngine,
  kCheck,   // looks at what the program waits for
  kFaults,  // lets things happen at their time
  kLast,    // core/last_thread.h
};

// Starts one that calls `run(argument)`. `thread`: to be joined; null: it is detached. 0 or a
// positive errno. Thread: any.
int start_thread(OwnThread which, void (*run)(void*), void* argument, pthread_t* thread = nullptr);

// Whether a thread of this name, as /proc/PID/task/TID/comm has it, is one of these.
bool is_own_thread(std::string_view name);

}  // namespace uiw::core
