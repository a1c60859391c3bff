// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What queue pairs and completion queues are under --faults: objects of ours that hold the handle
// of the next table. All other handles are the next table's own.
//
// Locks, in this order: Qp::posting while it is waited for, Cq::mutex, Qp::posting when it is only
// tried, Qp::mutex.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/generation.h"
#include "faults/sends.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::faults {

struct Cq;

// What a rule that paces a request has counted for it.
struct Paced {
  Hit hit;
  const Rules* rules;  // whose it is
  in6_addr peer;
  uint64_t bytes;
};

// A request on its way to the next table, with all that it refers to.
struct Parcel {
  ibv_send_wr wr;
  std::vector<ibv_sge> sges;
  std::vector<uint8_t> inline_data;
  std::optional<ibv_mr> region{};  // of BIND_MW: --check gives one that lasts as long as the post
  core::Nanoseconds due;           // core::now()
  std::optional<Paced> paced{};
};

// How far a queue pair is on its way to ERR by a rule.
enum class Fate : uint8_t {
  kNone,     // no rule has met it
  kFailing,  // a stand-in is posted for the request that is to fail; what comes behind is held, or,
             // of datagrams, gets lost and is to flush
  kFailed,   // that has completed, or a receive has failed; it is to be moved to ERR
  kOver,     // it has been moved to ERR, and what was held has been posted
};

// What ends a connection that a rule has met, with the request that would be beyond rule->bytes.
struct Doom {
  Hit hit;
  uint64_t edition;      // of the rules: with others it meets nothing any more
  bool is_by_cm;         // else by number
  uint64_t carried = 0;  // bytes of requests that were posted since
};

struct Qp {
  explicit Qp(uint64_t ordinal) : stream(Scope::kQueuePair, ordinal) {}

  uiwarp_qp* next = nullptr;
  std::shared_ptr<Cq> send_cq, recv_cq;
  uint32_t number = 0;
  ibv_qp_cap cap{};  // as granted
  std::string device;
  bool is_for_datagrams = false;
  bool signal_all = false;
  const unsigned process = core::generation();

  // From what a rule says of a request until it is posted; from batch_begin() to batch_end().
  std::mutex posting;
  // Since batch_begin(), or of the list that is posted; under posting.
  size_t batch_added = 0, batch_held = 0, batch_kept = 0;
  std::vector<Hit> batch_lost;  // of datagrams that get lost, which is said when they are posted
  bool is_added_lost = false;   // the datagram that was added last
  std::deque<Parcel> parcels;   // under posting: what is kept back, in order
  bool has_courier = false;     // under posting: deliver() is to come

  std::mutex mutex;
  Stream stream;                     // under mutex
  Sends sends;                       // under mutex
  std::vector<Sent> held;            // under mutex
  Fate fate = Fate::kNone;           // under mutex
  bool has_failed_receive = false;   // under mutex: messages that come behind it are none
  bool is_injected = false;          // under mutex: it is a rule that it fails by
  bool is_by_number = false;         // under mutex: and not by rdma_cm
  bool times_out = false;            // under mutex: what fails first has not been answered in time
  std::atomic<bool> is_over{false};  // it is in ERR, as far as is known: what is posted flushes
  std::optional<Doom> doom;          // under mutex: its connection is to end
  in6_addr peer{};                   // under mutex; all zero: not known
  uint64_t paced = 0;                // under mutex: the edition of rules of which that was said

  bool is_leaving = false;  // under Cq::mutex of both queues: it is being destroyed

  // In a child of the process that made it locks may be held for good: all is passed on as it is.
  bool foreign() const { return process != core::generation(); }
};

// A completion that has been polled from the next table.
struct Withheld {
  ibv_wc wc;
  const Qp* qp;           // whose it is; null: not known
  core::Nanoseconds due;  // when it may be handed out
};

struct Cq {
  explicit Cq(uint64_t ordinal) : stream(Scope::kCompletionQueue, ordinal) {}

  uiwarp_cq* next = nullptr;
  const unsigned process = core::generation();

  std::mutex mutex;
  Stream stream;                          // under mutex
  std::deque<Withheld> withheld;          // under mutex, in the order of completion
  std::unordered_map<uint32_t, Qp*> qps;  // under mutex, by number: who completes here
  std::atomic<bool> is_overrun{false};    // by a rule
  bool is_destroyed = false;              // under mutex
  bool is_watched = false;                // under mutex

  bool foreign() const { return process != core::generation(); }
};

// A handle points to an object; that of a completion queue shares it with who watches it.
inline Qp& of(uiwarp_qp* handle) {
  return *reinterpret_cast<Qp*>(handle);
}
inline const std::shared_ptr<Cq>& of(uiwarp_cq* handle) {
  return *reinterpret_cast<const std::shared_ptr<Cq>*>(handle);
}

}  // namespace uiw::faults
