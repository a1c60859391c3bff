// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The last Writes of a queue pair that have completed: with iWARP the peer may refuse one after
// that, and names rkey and address of a segment. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "check/request.h"

namespace uiw::check {

struct DoneWrite {
  uint64_t wr_id = 0;
  uint64_t remote_address = 0;
  uint64_t bytes = 0;
  uint32_t rkey = 0;
  Stack posted{};

  // `address`: of a segment, which may have no bytes.
  bool has(uint32_t key, uint64_t address) const {
    return key == rkey && address >= remote_address && address - remote_address <= bytes;
  }
};

inline bool is_write(const Request& request) {
  return request.rkey != 0 && request.role != Role::kSink;
}

inline DoneWrite done_write_of(const Request& request) {
  return {request.wr_id, request.remote_address, request.bytes(), request.rkey, request.posted};
}

// Thread: one at a time.
class LastWrites {
 public:
  void add(const Request& request) {
    if (is_write(request)) all_[count_++ % kMost] = done_write_of(request);
  }
  // Those that have the segment, the oldest first.
  template <class Visit>
  void each_with(uint32_t rkey, uint64_t address, Visit visit) const {
    for (uint64_t i = count_ > kMost ? count_ - kMost : 0; i < count_; ++i)
      if (all_[i % kMost].has(rkey, address)) visit(all_[i % kMost]);
  }

 private:
  static constexpr uint64_t kMost = 16;
  uint64_t count_ = 0;
  std::array<DoneWrite, kMost> all_{};
};

}  // namespace uiw::check
