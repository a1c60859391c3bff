// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a program has moved an RC queue pair to RTS, and whether adapters would have taken it: the
// attributes that they require on the way, and the depth of what is posted then. Pure.
//
// Only queue pairs that are connected by number are judged. rdma_cm moves the others, with the
// attributes that the kernel gives it, which for iWARP are few.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/rules.h"
#include "check/stack.h"

namespace uiw::check {

// What one call lacked.
struct MoveFault {
  Fault fault;
  Stack called;
};

// Of one queue pair. Thread: one at a time.
class Moves {
 public:
  // ibv_modify_qp() succeeded, at `called`. What is found may be about an earlier call.
  std::vector<MoveFault> made(const ibv_qp_attr& attr, int mask, const Stack& called);

  // A receive was posted, at `posted`, and taken: adapters take none before the move to INIT.
  void receive_taken(const Stack& posted);

  // A Read or atomic is posted on a queue pair that the program has given no depth for them.
  std::optional<Fault> no_depth_for(const ibv_send_wr& wr) const;

 private:
  enum class Peer : uint8_t {
    kUnknown,   // not in RTR yet, or taken there by rdma_cm
    kByNumber,  // ibv_modify_qp() to RTR named it
  };
  void add_missing(std::vector<MoveFault>& found, ibv_qp_state from, ibv_qp_state to, int missing,
                   const Stack& called) const;

  ibv_qp_state state_ = IBV_QPS_RESET;  // as far as ibv_modify_qp() moved it
  Peer peer_ = Peer::kUnknown;
  int missing_at_init_ = 0;
  Stack init_called_;
  std::optional<Stack> early_receive_;    // the first one before the move to INIT
  std::optional<uint8_t> max_rd_atomic_;  // as they were set
  uint8_t max_dest_rd_atomic_ = 0;
};

// "IBV_QP_PORT, IBV_QP_PKEY_INDEX", of the bits of `mask`.
std::string attributes_of(int mask);

}  // namespace uiw::check
