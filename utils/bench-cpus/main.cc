// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp-bench-cpus: how far apart this machine's processors are. Prints how many microseconds one
// of them takes to write 64 KiB that another one has just read: about 1 where both are of one core,
// 9 where they share a cache, 37 where they do not. A host that runs a virtual machine may put its
// processors now here, now there, and whatever passes memory between them is then as much slower.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/cpu_mask.h"

namespace {

using uiw::core::CpuMask;
using uiw::core::Nanoseconds;

constexpr size_t kBlock = 64 << 10;
// Few enough to be in the reader's cache still when they come round.
constexpr int kBlocks = 4;
constexpr int kTimes = 300;

alignas(64) uint8_t blocks[kBlocks][kBlock];
alignas(64) std::atomic<int> written{0};
alignas(64) std::atomic<int> read_back{0};

// The first two processors on which we may run. False: there is only one.
bool two_processors(CpuMask (&one)[2]) {
  CpuMask allowed;
  if (!allowed.read(0) || allowed.count() < 2) return false;
  for (int cpu = 0, found = 0; found < 2; ++cpu) {
    if (allowed.contains(cpu)) one[found++].add(cpu);
  }
  return true;
}

void read_all(const CpuMask& processor) {
  processor.write();
  uint64_t sum = 0;
  for (int i = 0; i < kTimes; ++i) {
    while (written.load(std::memory_order_acquire) <= i) {
    }
    for (size_t at = 0; at < kBlock; at += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, &blocks[i % kBlocks][at], sizeof word);
      sum += word;
    }
    asm volatile("" ::"r"(sum));  // so that no compiler leaves the reading out
    read_back.store(i + 1, std::memory_order_release);
  }
}

// Nanoseconds for a block.
Nanoseconds write_all(const CpuMask& processor) {
  processor.write();
  std::vector<Nanoseconds> took;
  took.reserve(kTimes);
  for (int i = 0; i < kTimes; ++i) {
    while (read_back.load(std::memory_order_acquire) + kBlocks <= i) {
    }
    const Nanoseconds start = uiw::core::now();
    std::memset(blocks[i % kBlocks], i, kBlock);
    took.push_back(uiw::core::now() - start);
    written.store(i + 1, std::memory_order_release);
  }
  std::nth_element(took.begin(), took.begin() + kTimes / 2, took.end());
  return took[kTimes / 2];
}

}  // namespace

int main() {
  CpuMask processors[2];
  if (!two_processors(processors)) {
    fprintf(stderr, "uiwarp-bench-cpus: there is only one processor to run on\n");
    return 1;
  }
  std::thread reader(read_all, std::cref(processors[1]));
  const Nanoseconds took = write_all(processors[0]);
  reader.join();
  printf("%.2f\n", static_cast<double>(took) / uiw::core::kMicrosecond);
  return 0;
}
