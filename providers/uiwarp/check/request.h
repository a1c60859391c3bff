// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is remembered of a work request. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>

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
  static constexpr uint32_t kMostSges = 16;  // a request with more is refused

  uint64_t wr_id = 0;
  Role role = Role::kNothing;
  bool signaled = false;
  std::span<const ibv_sge> sges{};        // not its own: of the program's list, or of Requests
  uint64_t remote_address = 0;            // with rkey
  uint32_t rkey = 0;                      // of the peer's memory that it asks for, if any
  std::optional<uint32_t> fingerprint{};  // of a source's bytes when it was posted
  Stack posted{};

  // Of all SGEs.
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const ibv_sge& sge : sges) sum += sge.length;
    return sum;
  }
};

// None of a list that is too long.
inline std::span<const ibv_sge> sges_of(const ibv_sge* list, int count) {
  if (count <= 0 || count > static_cast<int>(Request::kMostSges)) return {};
  return {list, static_cast<size_t>(count)};
}

}  // namespace uiw::check
