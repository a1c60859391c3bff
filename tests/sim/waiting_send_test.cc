// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A Send that waits for its receive, and how the connection goes on or ends behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/tuning.h"
#include "sim/virtual_time.h"
#include "support/vectors.h"

namespace uiw::test {
namespace {

class WaitingSend : public VirtualTime {
 protected:
  // `other` sends what finds no receive at `one`. The time to wait is main.cc's.
  static constexpr core::Nanoseconds kWait = 60 * core::kSecond;
};

// rnr_retry 7: the sender's adapter would try for ever.
TEST_P(WaitingSend, ASendMayWaitForItsReceiveForEver) {
  const auto [ours, theirs] = kernel.connect();
  PlainEnd end(*engine, *engine, memory, 100, {});
  end.attach(ours, agreement_of(end.options, false), fpdu(untagged(3, 0, 1, 0, {})));
  const bool for_ever = GetParam() % 2;
  end.qp().await_receives(for_ever);
  run(kernel.now() + 3600 * core::kSecond);
  EXPECT_EQ(end.ended(), !for_ever);
  if (for_ever) {
    ASSERT_EQ(end.receive(RecvWr({}, 0)), 0);
    run(kernel.now() + core::kMillisecond);
    EXPECT_EQ(statuses(end.received()), std::vector{IBV_WC_SUCCESS});
  }
  end.destroy();
  kernel.close(theirs);
}

// A Send waits for its receive, and its peer has gone: what is to be sent by number fails as it
// would without that Send, which may still get its receive until then.
TEST_P(WaitingSend, APeerThatHasGoneIsMissedBehindASendThatWaits) {
  const auto [ours, theirs] = kernel.connect();
  PlainEnd end(*engine, *engine, memory, 100, {});
  ASSERT_EQ(end.qp().expect_peer(), 0);
  ASSERT_EQ(end.modify(IBV_QPS_RTS), 0);
  end.qp().await_receives(GetParam() % 2);
  end.attach(ours, agreement_of(end.options, true), fpdu(untagged(3, 0, 1, 0, {})));
  run(kernel.now() + core::kMillisecond);
  kernel.close(theirs);
  run(kernel.now() + core::kMillisecond);
  // Of the first one TCP may take all, before it knows.
  Buffer buffer(memory, 8);
  const core::Nanoseconds begin = kernel.now();
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(end.post(SendWr(IBV_WR_RDMA_WRITE, {buffer.sge()}).to(0x1000, 0x100)), 0);
  run(begin + 900 * core::kMillisecond);
  EXPECT_LE(end.sent_count(), 1u);
  const bool is_received = GetParam() % 4 < 2;
  if (is_received) ASSERT_EQ(end.receive(RecvWr({}, 0)), 0);
  run(begin + (is_received ? 2000 : 1100) * core::kMillisecond);
  const std::vector<ibv_wc_status> sent = statuses(end.sent());
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_THAT(sent[0], testing::AnyOf(IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR));
  EXPECT_EQ(sent[1], sent[0] == IBV_WC_SUCCESS ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(sent[2], IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(statuses(end.received()),
            std::vector<ibv_wc_status>(is_received ? 1 : 0, IBV_WC_SUCCESS));
  end.destroy();
}

// A peer that has closed is missed as well. By number requests end as they would without that Send:
// what the peer answered, or refused, before it went counts, and nothing is stored that it wrote.
TEST_P(WaitingSend, APeerThatHasClosedIsMissedBehindIt) {
  enum class Asked { kAnswered, kRefused, kLate };
  for (const Asked asked : {Asked::kAnswered, Asked::kRefused, Asked::kLate}) {
    for (const bool by_number : {true, false}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(asked) << by_number);
      const EndOptions options{.crc = GetParam() % 4 < 2};
      Pair pair(*this, 1 << 20, options, options);  // the FIN is to come through
      PlainEnd &one = pair.one, &other = pair.other;
      if (by_number) pair.expect_each_other();
      one.qp().await_receives(!by_number || GetParam() % 2);
      pair.attach(GetParam() % 8 < 4);
      Buffer source(pair.other_memory, pattern(50'000)), target(memory, 50'000);
      Buffer sink(memory, 50'000);
      ASSERT_EQ(other.post(SendWr(IBV_WR_SEND, {source.sge(0, 20)})), 0);
      ASSERT_EQ(other.post(SendWr(IBV_WR_SEND, {source.sge()})), 0);
      ASSERT_EQ(
          other.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(target.start(), target.stag())),
          0);
      run(kernel.now() + core::kMillisecond);
      if (asked == Asked::kLate) other.destroy();
      const uint32_t rkey = source.stag() ^ (asked == Asked::kRefused ? 0x100 : 0);
      for (uint64_t i = 0; i < 2; ++i)
        ASSERT_EQ(one.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, i).to(source.start(), rkey)), 0);
      run(kernel.now() + core::kMillisecond);
      other.destroy();
      EXPECT_EQ(one.sent_count(), 0u);
      run(kernel.now() + kWait + 2 * core::kSecond);
      const std::vector<ibv_wc_status> sent = statuses(one.sent());
      ASSERT_EQ(sent.size(), 2u);
      const ibv_wc_status first = !by_number                 ? IBV_WC_WR_FLUSH_ERR
                                  : asked == Asked::kLate    ? IBV_WC_RETRY_EXC_ERR
                                  : asked == Asked::kRefused ? IBV_WC_REM_ACCESS_ERR
                                                             : IBV_WC_SUCCESS;
      EXPECT_EQ(sent[0], first);
      EXPECT_EQ(sent[1], first == IBV_WC_SUCCESS ? first : IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(sink.content() == source.content(), first == IBV_WC_SUCCESS);
      EXPECT_TRUE(target.content() == Octets(50'000));
      EXPECT_TRUE(one.async_events().empty());
      ASSERT_EQ(one.receive(RecvWr({}, 0)), 0);
      run(kernel.now() + core::kSecond);
      for (const ibv_wc& wc : one.received()) EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      one.destroy();
    }
  }
}

// A FIN behind a Send that waits for a receive: that completes, then the end is seen.
TEST_P(WaitingSend, AFinWaitsForTheReceiveBeforeIt) {
  const auto [ours, theirs] = kernel.connect();
  PlainEnd end(*engine, *engine, memory, 100, {});
  end.attach(ours, agreement_of(end.options, false), fpdu(untagged(3, 0, 1, 0, {})));
  run(kernel.now() + core::kMillisecond);
  kernel.half_close(theirs);
  run(kernel.now() + core::kMillisecond);
  EXPECT_FALSE(end.ended());
  ASSERT_EQ(end.receive(RecvWr({}, 0)), 0);
  run(kernel.now() + core::kMillisecond);
  EXPECT_EQ(statuses(end.received()), std::vector{IBV_WC_SUCCESS});
  EXPECT_EQ(end.end_error(), 0);
  end.destroy();
  kernel.close(theirs);
}

// The same where whoever polls receives: the engine has asked for bytes when it finds that the Send
// has to wait, and gets the FIN.
TEST_P(WaitingSend, AFinWaitsForTheReceiveBeforeItWherePollersReceive) {
  const auto [ours, theirs] = kernel.connect();
  const int peer = theirs;  // clang 14 captures no structured binding
  PlainEnd end(*engine, *engine, memory, 100, {});
  end.attach(ours, agreement_of(end.options, false));
  uint32_t msn = 0;
  const auto arrive = [&] {
    Octets octets = fpdu(untagged(3, 0, ++msn, 0, {}));
    for (size_t sent = 0; sent < octets.size(); run(kernel.now() + 10 * core::kMicrosecond)) {
      const iovec rest{octets.data() + sent, octets.size() - sent};
      sent += static_cast<size_t>(std::max(0L, kernel.send(peer, {&rest, 1})));
    }
  };
  for (int i = 0; i < 100 && !end.state().is_received_by_pollers(); ++i) {
    ASSERT_EQ(end.receive(RecvWr({}, msn)), 0);
    arrive();
    for (uint32_t polls = 0; polls < 2 * core::tuning::kPollsOfBusyPoller; ++polls) end.collect();
  }
  ASSERT_TRUE(end.state().is_received_by_pollers());
  while (end.received_count() < msn) end.collect();
  arrive();
  while (!end.state().receiver.was_stopped()) end.collect();
  kernel.half_close(theirs);
  run(kernel.now() + core::kMillisecond);
  EXPECT_FALSE(end.ended());
  ASSERT_EQ(end.receive(RecvWr({}, msn - 1)), 0);
  run(kernel.now() + core::kMillisecond);
  EXPECT_EQ(end.received_count(), msn);
  EXPECT_EQ(end.received().back().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(end.ended());
  EXPECT_EQ(end.end_error(), 0);
  end.destroy();
  kernel.close(theirs);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WaitingSend, testing::Range(1u, 21u));

}  // namespace
}  // namespace uiw::test
