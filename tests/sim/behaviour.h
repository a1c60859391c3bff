// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The behaviour suite: written once, run in the simulator with many seeds and over TCP.
#pragma once

#include <gtest/gtest.h>

#include "sim/world.h"

namespace uiw::test {

class Behaviour : public testing::TestWithParam<Medium> {
 protected:
  void connect(EndOptions first = {}, EndOptions second = {}) {
    std::tie(a, b) = world->connect(first, second);
  }
  bool run_until(const std::function<bool()>& done) { return world->run_until(done); }
  bool both_ended() {
    return run_until([&] { return a->ended() && b->ended(); });
  }
  bool is_tcp() const { return GetParam().tcp; }

  std::unique_ptr<World> world = World::create(GetParam());
  End* a = nullptr;  // the initiator
  End* b = nullptr;
};

// wr_ids must be 0, 1, 2, ...: every work request completes once and in order.
inline void expect_in_order(const std::vector<ibv_wc>& completions) {
  for (size_t i = 0; i < completions.size(); ++i) ASSERT_EQ(completions[i].wr_id, i);
}

// A receive that has immediate data, of a Write or of a Send.
inline void expect_immediate(const ibv_wc& wc, ibv_wc_opcode opcode, uint64_t wr_id, uint32_t value,
                             size_t size) {
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, wr_id);
  EXPECT_EQ(wc.opcode, opcode);
  EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(wc.imm_data, __builtin_bswap32(value));
  EXPECT_EQ(wc.byte_len, size);
}

inline std::vector<ibv_wc_status> statuses(const std::vector<ibv_wc>& completions) {
  std::vector<ibv_wc_status> out;
  for (const ibv_wc& wc : completions) out.push_back(wc.status);
  return out;
}

#define ASSERT_REACHED(condition) \
  ASSERT_TRUE(world->run_until([&] { return (condition); })) << #condition

}  // namespace uiw::test
