// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What an instrument wants of datagrams that have come for a UD queue pair.
#include <atomic>

#include "core/clock.h"
#include "core/instrumented.h"
#include "datagram/late.h"
#include "uiwarp/uiwarp-verbs.h"
#include "unit/verbs/ud.h"

namespace uiw::verbs::test {
namespace {

using datagram::Drop;
constexpr core::Nanoseconds kSoon = 20 * core::kMillisecond, kNever = 60 * core::kSecond;

class UdFates : public UdQueuePairs {
 protected:
  void SetUp() override {
    UdQueuePairs::SetUp();
    table_.datagram_arriving = [](uint32_t, uint64_t* delay) {
      *delay = static_cast<uint64_t>(delay_.load());
      return fate_.load();
    };
    core::instrumented = &table_;
    qp_ = make_rts();
    for (uint64_t i = 0; i < 16; ++i) ASSERT_EQ(post_receive(qp_, i), 0);
  }
  void TearDown() override {
    if (qp_) destroy(qp_);
    core::instrumented = nullptr;
    UdQueuePairs::TearDown();
  }

  // Behind it nothing that was sent before is still to meet its fate.
  void send(std::string_view payload, uiwarp_datagram_fate fate, core::Nanoseconds delay = 0) {
    fate_ = fate;
    delay_ = delay;
    peer_.send(port_of(qp_), datagram_of(number_of(qp_), peer_.number(), kQkey, payload));
    const uint64_t wrong = drops(Drop::kQkey);
    peer_.send(port_of(qp_), datagram_of(number_of(qp_), peer_.number(), kQkey + 1, "the end"));
    wait_for_drops(Drop::kQkey, wrong + 1);
  }
  std::string next() {
    const ibv_wc wc = wait();
    return received(wc.wr_id, wc);
  }

  static inline std::atomic<uiwarp_datagram_fate> fate_{UIWARP_DATAGRAM_ARRIVES};
  static inline std::atomic<core::Nanoseconds> delay_{0};
  uiwarp_verbs table_{};
  uiwarp_qp* qp_ = nullptr;
  Stranger peer_;
};

TEST_F(UdFates, OneThatIsLateComesWhenItsTimeHasComeAndIsOvertakenMeanwhile) {
  const core::Nanoseconds begin = core::now();
  send("late", UIWARP_DATAGRAM_LATE, kSoon);
  EXPECT_EQ(next(), "late");
  EXPECT_GE(core::now() - begin, kSoon);
  send("never in this test", UIWARP_DATAGRAM_LATE, kNever);
  send("overtakes it", UIWARP_DATAGRAM_ARRIVES);
  EXPECT_EQ(next(), "overtakes it");
}

TEST_F(UdFates, OneThatIsLateOvertakesNobody) {
  send("overtaken", UIWARP_DATAGRAM_OVERTAKEN);
  send("late", UIWARP_DATAGRAM_LATE, kSoon);
  EXPECT_EQ(next(), "late");
  send("the next one", UIWARP_DATAGRAM_ARRIVES);
  EXPECT_EQ(next(), "the next one");
  EXPECT_EQ(next(), "overtaken");
}

TEST_F(UdFates, WhatIsLateIsNotThoseOfAQueuePairThatWasReset) {
  send("late", UIWARP_DATAGRAM_LATE, kSoon);
  EXPECT_EQ(modify(qp_, IBV_QPS_RESET), 0);
  to_rts(qp_);
  ASSERT_EQ(post_receive(qp_, 1), 0);
  send("behind it", UIWARP_DATAGRAM_LATE, 2 * kSoon);
  EXPECT_EQ(next(), "behind it");
}

// And whatever waits goes with the queue pair.
TEST_F(UdFates, WhereTooManyAreLateOneMoreIsLost) {
  const uint64_t before = drops(Drop::kTooManyLate);
  for (size_t i = 0; i < datagram::Late::kMost; ++i) send("late", UIWARP_DATAGRAM_LATE, kNever);
  EXPECT_EQ(drops(Drop::kTooManyLate), before);
  send("one too many", UIWARP_DATAGRAM_LATE, kSoon);
  EXPECT_EQ(drops(Drop::kTooManyLate), before + 1);
  send("in time", UIWARP_DATAGRAM_ARRIVES);
  EXPECT_EQ(next(), "in time");
  expect_none();
}

}  // namespace
}  // namespace uiw::verbs::test
