// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/own_stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>

#include "core/no_cancellation.h"
#include "core/no_signals.h"

namespace uiw::core {
namespace {

struct Job {
  void (*run)(void*);
  void* argument;
};

void* on_thread(void* argument) {
  const Job& job = *static_cast<const Job*>(argument);
  job.run(job.argument);
  return nullptr;
}

// makecontext() passes arguments of type int only.
void on_stack(unsigned high, unsigned low) {
  on_thread(reinterpret_cast<void*>(uint64_t{high} << 32 | low));
}

}  // namespace

size_t stack_left() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size = 0;
  const int error = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto bottom = reinterpret_cast<uintptr_t>(lowest);
  return error == 0 && here > bottom ? here - bottom : 0;
}

bool run_on_own_thread(size_t size, void (*run)(void*), void* argument) {
  Job job{run, argument};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size);
  pthread_t thread;
  bool started;
  {
    const NoSignals none;
    started = pthread_create(&thread, &attributes, on_thread, &job) == 0;
  }
  pthread_attr_destroy(&attributes);
  if (started) {
    const NoCancellation waiting;
    pthread_join(thread, nullptr);
  }
  return started;
}

bool run_on_own_stack(size_t size, void (*run)(void*), void* argument) {
  const auto guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, guard + size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  Job job{run, argument};
  const auto at = reinterpret_cast<uint64_t>(&job);
  ucontext_t here, there;
  bool ran = false;
  if (mprotect(memory, guard, PROT_NONE) == 0 && getcontext(&there) == 0) {
    there.uc_stack.ss_sp = memory;
    there.uc_stack.ss_size = guard + size;
    there.uc_link = &here;
    makecontext(&there, reinterpret_cast<void (*)()>(on_stack), 2, static_cast<unsigned>(at >> 32),
                static_cast<unsigned>(at));
    ran = swapcontext(&here, &there) == 0;
  }
  munmap(memory, guard + size);
  return ran;
}

void run_with_enough_stack(size_t enough, size_t size, void (*run)(void*), void* argument) {
  const size_t left = stack_left();
  if (left == 0 || left >= enough || !run_on_own_stack(size, run, argument)) run(argument);
}

}  // namespace uiw::core
