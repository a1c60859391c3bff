// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Reads and atomics that are few beside those on their way may be left, to go together.
// doc/decisions/019-requests-that-go-together.md
#include <gtest/gtest.h>

#include <deque>

#include "support/machine.h"

namespace uiw::test {
namespace {

class Coalesce : public testing::Test {
 protected:
  void start(uint16_t ord) {
    m = std::make_unique<Machine>(MachineOptions{.ird = 4, .ord = ord, .depth = 256});
    sink = std::make_unique<Buffer>(m->memory, 8);
  }
  void read(int count = 1) {
    for (; count > 0; --count)
      ASSERT_EQ(m->post(SendWr(IBV_WR_RDMA_READ, {sink->sge()}).to(0x1000, 1)), 0);
  }
  void send() { ASSERT_EQ(m->post(SendWr(IBV_WR_SEND)), 0); }
  // How many messages go, if some may be left.
  size_t go(bool may = true) {
    m->tx().may_leave({.reads = may});
    size_t count = 0;
    for (Octets& ulpdu : ulpdus_of(m->transmit())) {
      requests.push_back(std::move(ulpdu));
      ++count;
    }
    return count;
  }
  void answer() {
    ASSERT_EQ(m->feed(response_to(requests.front(), Octets(8))), qp::RxStatus::kOk);
    requests.pop_front();
  }
  std::unique_ptr<Machine> m;
  std::unique_ptr<Buffer> sink;
  std::deque<Octets> requests;
};

TEST_F(Coalesce, FewBesideManyAreLeftUntilTheyAreMore) {
  start(32);
  read(8);
  EXPECT_EQ(go(), 8u);  // nothing is on its way yet
  EXPECT_FALSE(m->tx().left().reads);
  for (int left = 1; left <= 2; ++left) {
    read();
    EXPECT_EQ(go(), 0u);
    EXPECT_TRUE(m->tx().left().reads);
  }
  read();
  EXPECT_EQ(go(), 3u);
  EXPECT_FALSE(m->tx().left().reads);
}

TEST_F(Coalesce, TheFirstOnesGoAtOnce) {
  start(32);
  for (int i = 0; i < 4; ++i) {
    read();
    EXPECT_EQ(go(), 1u) << i;
  }
  read();
  EXPECT_EQ(go(), 0u);
}

TEST_F(Coalesce, SixteenGoHoweverManyAreOnTheirWay) {
  start(200);
  read(150);
  EXPECT_EQ(go(), 150u);
  read(15);
  EXPECT_EQ(go(), 0u);
  read();
  EXPECT_EQ(go(), 16u);
}

TEST_F(Coalesce, AllGoWhereNoneMayBeLeft) {
  start(32);
  read(20);
  EXPECT_EQ(go(), 20u);
  read(2);
  EXPECT_EQ(go(), 0u);
  EXPECT_EQ(go(false), 2u);
  EXPECT_FALSE(m->tx().left().reads);
}

TEST_F(Coalesce, WhatIsLeftGoesWhenOthersWereAnswered) {
  start(32);
  read(5);
  EXPECT_EQ(go(), 5u);
  read();
  EXPECT_EQ(go(), 0u);
  answer();
  EXPECT_EQ(go(), 0u);
  answer();
  EXPECT_EQ(go(), 1u);
}

// RFC 5041 5.3, and posting order: what is posted behind them is sent behind them, so they go.
TEST_F(Coalesce, NothingElseWaitsForThem) {
  start(32);
  read(12);
  EXPECT_EQ(go(), 12u);
  read(2);
  EXPECT_EQ(go(), 0u);
  send();
  EXPECT_EQ(go(), 3u);
  read();
  send();
  read();
  EXPECT_EQ(go(), 3u);
}

TEST_F(Coalesce, AtomicsAsWell) {
  start(32);
  read(8);
  EXPECT_EQ(go(), 8u);
  ASSERT_EQ(m->post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {sink->sge()}).atomic(0x1000, 1, 1)), 0);
  EXPECT_EQ(go(), 0u);
  read();
  EXPECT_EQ(go(), 0u);
  ASSERT_EQ(m->post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {sink->sge()}).atomic(0x1000, 1, 1)), 0);
  EXPECT_EQ(go(), 3u);
}

// RFC 5040 6.1: those for which there is no room count neither as left nor as on their way.
TEST_F(Coalesce, WithinOrd) {
  start(8);
  read(20);
  EXPECT_EQ(go(), 8u);
  EXPECT_EQ(go(), 0u);
  EXPECT_FALSE(m->tx().left().reads);
  answer();
  EXPECT_EQ(go(), 0u);
  EXPECT_TRUE(m->tx().left().reads);
  answer();
  EXPECT_EQ(go(), 2u);
}

TEST_F(Coalesce, WithoutOrdAReadFailsAllTheSame) {
  start(0);
  read();
  EXPECT_EQ(go(), 0u);
  EXPECT_TRUE(m->tx().fault().raised);
}

TEST_F(Coalesce, PeersAreAnsweredMeanwhile) {
  start(32);
  Buffer source(m->memory, 8);
  read(8);
  EXPECT_EQ(go(), 8u);
  read();
  const Octets request = read_request(1, 0, 8, source.stag(), source.start());
  ASSERT_EQ(m->feed(fpdu(untagged(1, 1, 1, 0, request))), qp::RxStatus::kOk);
  EXPECT_EQ(go(), 1u);
  EXPECT_TRUE(m->tx().left().reads);
}

TEST_F(Coalesce, AGracefulCloseLeavesNone) {
  start(32);
  read(8);
  EXPECT_EQ(go(), 8u);
  read();
  EXPECT_EQ(go(), 0u);
  m->tx().stop_starting();
  EXPECT_FALSE(m->tx().idle());
  EXPECT_EQ(go(false), 1u);
}

}  // namespace
}  // namespace uiw::test
