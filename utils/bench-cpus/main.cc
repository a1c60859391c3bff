// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp-bench-cpus: how far apart this machine's processors are. Prints how many microseconds one
// of them takes to write 64 KiB that another one has just read: about 1 where both are of one core,
// 9 where they share a cache, 37 where they do not. A host that runs a virtual machine may put its
// processors now here, now there, and whatever passes memory between them is then as much slower.
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBlock = 64 << 10;
// Few enough to be in the reader's cache still when they come round.
constexpr int kBlocks = 4;
constexpr int kTimes = 300;

alignas(64) uint8_t blocks[kBlocks][kBlock];
alignas(64) std::atomic<int> written{0};
alignas(64) std::atomic<int> read_back{0};

double now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// The first two processors on which we may run; their number.
int two_processors(cpu_set_t (&one)[2]) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  int found = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_ZERO(&one[found]);
    CPU_SET(cpu, &one[found++]);
  }
  return found;
}

void run_on(const cpu_set_t& processor) {
  pthread_setaffinity_np(pthread_self(), sizeof processor, &processor);
}

void read_all(const cpu_set_t& processor) {
  run_on(processor);
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

double write_all(const cpu_set_t& processor) {
  run_on(processor);
  std::vector<double> took;
  took.reserve(kTimes);
  for (int i = 0; i < kTimes; ++i) {
    while (read_back.load(std::memory_order_acquire) + kBlocks <= i) {
    }
    const double start = now_us();
    std::memset(blocks[i % kBlocks], i, kBlock);
    took.push_back(now_us() - start);
    written.store(i + 1, std::memory_order_release);
  }
  std::nth_element(took.begin(), took.begin() + kTimes / 2, took.end());
  return took[kTimes / 2];
}

}  // namespace

int main() {
  cpu_set_t processors[2];
  if (two_processors(processors) < 2) {
    fprintf(stderr, "uiwarp-bench-cpus: there is only one processor to run on\n");
    return 1;
  }
  std::thread reader(read_all, processors[1]);
  const double us = write_all(processors[0]);
  reader.join();
  printf("%.2f\n", us);
  return 0;
}
