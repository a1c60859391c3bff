// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a page shows of a history: sums, distributions and the requests that stand out, bounded
// however many requests there are. Pure. A spoilt file gives wrong numbers, and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/history.h"

namespace uiw::trace {

// How much a page shows of each.
inline constexpr size_t kLeastBins = 24, kMostBins = 160;  // of the time that work took
inline constexpr size_t kMostSeries = 6;
inline constexpr size_t kMostHistograms = 12;
inline constexpr size_t kHistogramBins = 60;
inline constexpr size_t kHeatRows = 40;
inline constexpr size_t kMostRows = 50;      // of each table but these:
inline constexpr size_t kMostRequests = 25;  // the slowest, those that failed, messages that waited
inline constexpr size_t kMostEvents = 200;

// The first `shown` of `all`.
template <class T>
struct Most {
  std::vector<T> shown;
  uint64_t all = 0;
};

// A stretch of time in steps of 1, 2 or 5 times a power of ten nanoseconds.
struct Bins {
  int64_t from = 0, width = 1;
  size_t count = 0;  // 0: nothing was at work

  // kNobody: outside.
  size_t of(int64_t time) const;
};

// Latencies on a logarithmic scale, nanoseconds.
struct LogAxis {
  double low = 1, high = 10;

  // From 0 to 1, also of what lies outside.
  double place(double nanoseconds) const;
};

struct Sums {
  uint64_t requests = 0, succeeded = 0, unsignaled = 0, open = 0;
  uint64_t failed = 0, flushed = 0;  // of another reason, and because the queue pair had ended
  uint64_t bytes = 0;                // of those that succeeded or are unsignaled
};

// Requests of one process and opcode that are done, by the time at which that was polled.
struct Series {
  size_t process;
  uint8_t opcode;
  bool is_receive;
  Sums sums;
  std::vector<uint64_t> requests, bytes;  // of each bin
};

struct Histogram {
  Percentiles of;
  LogAxis axis;  // the same for all of an opcode
  std::array<uint64_t, kHistogramBins> counts{};
};

struct Traffic {
  size_t queue_pair;
  Sums sends, receives;
};

struct Digest {
  Sums sums;
  int64_t last = 0;  // nanoseconds from the first record to the last
  Bins bins;
  Most<Series> series;        // those with the most bytes
  Most<Traffic> queue_pairs;  // those with the most requests
  // Of each queue pair, and of all of a process that has several of an opcode: those of the most
  // requests, in the order of processes.
  Most<Percentiles> percentiles;
  std::vector<Histogram> histograms;  // the first of the same, by opcode

  // Latencies of sends, or where there is none of receives, by the time of their completions.
  bool heat_of_receives = false;
  LogAxis heat_axis;
  std::vector<std::array<uint64_t, kHeatRows>> heat;         // of each bin, from the shortest up
  std::vector<uint64_t> failures, flushes, waits, refusals;  // of each bin

  // Indices of History::requests. Sends only, where there are any.
  Most<size_t> slowest;
  Most<size_t> failed;  // in the order of time, those that were flushed last
  // Indices of History::events.
  Most<size_t> awaited;  // the longest first
  int64_t awaited_sum = 0;
  uint64_t awaited_in_vain = 0;
  Most<size_t> events;  // in the order of time; of more the first and the last half are shown
};

Digest digest(const History& history);

}  // namespace uiw::trace
