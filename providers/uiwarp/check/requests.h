// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program has posted to a work queue and not polled the completion of. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "check/stack.h"
#include "core/verbs_names.h"

namespace uiw::check {

enum class Role : uint8_t {
  kSource,   // its SGEs are read: Send, Write
  kSink,     // they are written: Read, atomics, receives
  kNothing,  // it has none: inline data, LOCAL_INV, BIND_MW
};

// Of a request that may have no opcode at all.
inline Role role_of(const ibv_send_wr& wr) {
  switch (core::value_of(wr.opcode)) {
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return Role::kSink;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
      return Role::kNothing;
    default:
      return wr.send_flags & IBV_SEND_INLINE ? Role::kNothing : Role::kSource;
  }
}

// What it asks of the peer's memory.
struct Remote {
  uint64_t address = 0;
  uint32_t rkey = 0;
};
inline Remote remote_of(const ibv_send_wr& wr) {
  switch (core::value_of(wr.opcode)) {
    case IBV_WR_RDMA_READ:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return {wr.wr.rdma.remote_addr, wr.wr.rdma.rkey};
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return {wr.wr.atomic.remote_addr, wr.wr.atomic.rkey};
    default:
      return {};
  }
}

struct Request {
  static constexpr uint32_t kKept = 16;   // SGEs; a request with more is refused
  static constexpr uint32_t kWithin = 2;  // of them; few requests have more

  uint64_t wr_id = 0;
  uint64_t sequence = 0;  // Requests' own: in the order of posting
  Role role = Role::kNothing;
  bool signaled = false;
  uint32_t sge_count = 0;
  ibv_sge first[kWithin] = {};
  std::vector<ibv_sge> rest;
  uint32_t rkey = 0;                    // of the peer's memory that it asks for, if any
  std::optional<uint32_t> fingerprint;  // of a source's bytes when it was posted
  Stack posted;
  uint64_t remote_address = 0;  // with rkey

  void keep(const ibv_sge* list, int count) {
    sge_count = count > 0 && count <= static_cast<int>(kKept) ? static_cast<uint32_t>(count) : 0;
    rest.clear();
    if (sge_count == 0) return;
    const uint32_t within = std::min(sge_count, kWithin);
    std::copy_n(list, within, first);
    rest.assign(list + within, list + sge_count);
  }
  template <class Visit>
  void each_sge(Visit visit) const {
    for (uint32_t i = 0; i < std::min(sge_count, kWithin); ++i) visit(first[i]);
    for (const ibv_sge& sge : rest) visit(sge);
  }
  // Of all SGEs.
  uint64_t bytes() const {
    uint64_t sum = 0;
    each_sge([&](const ibv_sge& sge) { sum += sge.length; });
    return sum;
  }
};

// One is kept for each entry of a queue that is in use.
static_assert(sizeof(Request) <= 216);

// Thread: one at a time.
class Requests {
 public:
  // Its sequence number.
  uint64_t add(Request request) {
    requests_.push_back(std::move(request));
    requests_.back().sequence = ++last_;
    return last_;
  }

  // It was not posted after all.
  void take_back(uint64_t sequence) {
    const auto found = std::ranges::find(requests_, sequence, &Request::sequence);
    if (found != requests_.end()) requests_.erase(found);
  }

  // Of a send queue: the completion `wr_id` was polled. Those before it are over too, and visited
  // first. One that succeeded is the oldest that asked for a completion; one that failed may be
  // any. Of equal ones the oldest is taken for the one that is meant; of none nothing is visited.
  template <class Visit>
  void complete_sends(uint64_t wr_id, bool success, Visit visit) {
    const auto found = std::ranges::find_if(requests_, [&](const Request& each) {
      return each.wr_id == wr_id && (each.signaled || !success);
    });
    if (found == requests_.end()) return;
    for (auto each = requests_.begin(); each != found; ++each) visit(*each, false);
    visit(*found, true);
    requests_.erase(requests_.begin(), found + 1);
  }

  // Of a receive queue.
  std::optional<Request> complete_receive(uint64_t wr_id) {
    const auto found = std::ranges::find(requests_, wr_id, &Request::wr_id);
    if (found == requests_.end()) return {};
    Request request = std::move(*found);
    requests_.erase(found);
    return request;
  }

  template <class Visit>
  void each(Visit visit) {
    for (Request& request : requests_) visit(request);
  }
  void clear() { requests_.clear(); }
  const std::deque<Request>& all() const { return requests_; }

 private:
  std::deque<Request> requests_;
  uint64_t last_ = 0;
};

}  // namespace uiw::check
