// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A set of CPUs, and the affinity of threads. Uses the raw system calls: glibc's cpu_set_t ends at
// 1024 CPUs.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <bit>

namespace uiw::core {

class CpuMask {
 public:
  // Reads the affinity of a thread, 0 for the calling one. False when the kernel does not say.
  bool read(pid_t thread) {
    *this = {};
    return syscall(SYS_sched_getaffinity, thread, sizeof words_, words_) > 0;
  }
  // Sets the affinity of the calling thread. False when the kernel refuses.
  bool write() const { return syscall(SYS_sched_setaffinity, 0, sizeof words_, words_) == 0; }

  bool operator==(const CpuMask&) const = default;
  bool contains(int cpu) const {
    return cpu < kMaxCpus && (words_[cpu / kWordBits] & bit(cpu)) != 0;
  }
  void add(int cpu) { words_[cpu / kWordBits] |= bit(cpu); }
  void remove(int cpu) {
    if (contains(cpu)) words_[cpu / kWordBits] &= ~bit(cpu);
  }
  int count() const {
    int cpus = 0;
    for (const unsigned long word : words_) cpus += std::popcount(word);
    return cpus;
  }

 private:
  static constexpr int kMaxCpus = 8192;
  static constexpr int kWordBits = 8 * sizeof(unsigned long);
  static unsigned long bit(int cpu) { return 1UL << (cpu % kWordBits); }
  unsigned long words_[kMaxCpus / kWordBits] = {};
};

}  // namespace uiw::core
