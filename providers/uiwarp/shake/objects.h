// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What completion queues are under --shake: objects of ours that hold the handle of the next table.
// All other handles are the next table's own; what is known of queue pairs is kept beside.
//
// Locks, in this order: Process::mutex, Cq::mutex. Nothing is taken inside of Qp::mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "core/explain.h"
#include "core/generation.h"
#include "shake/completions.h"
#include "shake/places.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::shake {

// Lanes have numbers of their own: two for each queue pair, and one for each completion queue.
enum class Kind : uint64_t { kSends, kReceives, kStrays };
constexpr uint64_t lane_number(Kind kind, uint64_t ordinal) {
  return ordinal * 3 + static_cast<uint64_t>(kind);
}

struct Cq;

struct Qp {
  // `ordinal`: which of the process this is.
  explicit Qp(uint64_t ordinal)
      : sends(lane_number(Kind::kSends, ordinal)),
        receives(lane_number(Kind::kReceives, ordinal)) {}

  uint32_t number = 0;
  Cq *send_cq = nullptr, *recv_cq = nullptr;
  Lane sends;     // under the mutex of send_cq
  Lane receives;  // under that of recv_cq

  bool signal_all = false;
  const uiwarp_srq* srq = nullptr;
  core::Told told;
  std::mutex mutex;
  Places send_places, receive_places;  // under mutex
  uint64_t before_batch = 0;           // under mutex: posted when the section began
};

struct Cq {
  Cq(const core::ShakeOptions& options, uint64_t ordinal)
      : completions(options, ordinal), strays(lane_number(Kind::kStrays, ordinal)) {}

  uiwarp_cq* next = nullptr;
  const uiwarp_context* context = nullptr;
  const unsigned process = core::generation();

  std::mutex mutex;
  Completions completions;                // under mutex
  Lane strays;                            // under mutex: of queue pairs that are not known
  std::unordered_map<uint32_t, Qp*> qps;  // under mutex, by number: who completes here

  // In a child of the process that made it locks may be held for good: all is passed on as it is.
  bool foreign() const { return process != core::generation(); }
};

// What this process has made and not destroyed. A child of it knows none of its parent's.
struct Process {
  std::mutex mutex;
  std::unordered_map<const uiwarp_qp*, std::unique_ptr<Qp>> qps;  // under mutex
  std::unordered_set<Cq*> cqs;                                    // under mutex
  std::atomic<uint64_t> last_qp{0}, last_cq{0};                   // ordinals
  core::Told told_of_srqs;
};
// Null when out of memory.
Process* this_process();

inline Cq& of(uiwarp_cq* handle) {
  return *reinterpret_cast<Cq*>(handle);
}

}  // namespace uiw::shake
