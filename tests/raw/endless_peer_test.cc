// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Peers that would keep a connection from ending: they read nothing, answer nothing, or ask for
// ever more. ctest sets the time that each may have.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/settings.h"
#include "support/host.h"

namespace uiw::test {
namespace {

// One FPDU each; far more of them than two sockets hold.
constexpr size_t kMessage = 60000, kCount = 600;

class EndlessPeer : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_LT(core::settings().close_timeout_ms, 1000u) << "run by ctest, which sets it";
  }
  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
};

// One that has read nothing, and both sockets are full.
struct StuckHost {
  explicit StuckHost(engine::Engine& engine, bool by_number = false)
      : host(engine, {.initiator = true, .crc = false, .depth = kCount}),
        from(host.memory, pattern(kMessage)) {
    if (by_number) {
      EXPECT_EQ(host.qp->expect_peer(), 0);
      EXPECT_EQ(host.modify(IBV_QPS_RTS), 0);
    }
    EXPECT_EQ(host.attach(sockets.ours), 0);
    for (uint64_t i = 0; i < kCount; ++i)
      EXPECT_EQ(host.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, i).to(0x1000, 0x55)), 0);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(host.receive(RecvWr({}, i)), 0);
    EXPECT_TRUE(wait_until_nothing_moves(peer.fd()));
  }
  // Each once and in order: some that went out, then only such that did not.
  void expect_all_done() {
    const std::vector<ibv_wc> done = host.sent();
    ASSERT_EQ(done.size(), kCount);
    size_t successes = 0;
    for (size_t i = 0; i < done.size(); ++i) {
      EXPECT_EQ(done[i].wr_id, i);
      if (done[i].status == IBV_WC_SUCCESS && successes == i)
        ++successes;
      else
        ASSERT_EQ(done[i].status, IBV_WC_WR_FLUSH_ERR) << i;
    }
    EXPECT_LT(successes, kCount);
    EXPECT_EQ(host.received().size(), 4u);
    for (const ibv_wc& wc : host.received()) EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(host.state(), IBV_QPS_ERR);
  }

  const SocketEnds sockets = connect_sockets();
  RawPeer peer{sockets.theirs};
  Host host;
  Buffer from;
};

TEST_F(EndlessPeer, ThatReadsNothingIsLeftInEachWay) {
  for (const Host::Ending how : Host::kEndings) {
    SCOPED_TRACE(static_cast<int>(how));
    StuckHost stuck(*engine);
    stuck.host.end_by(how);
    if (!Host::is_told(how)) continue;  // it has ended by then
    ASSERT_TRUE(stuck.host.wait_for_end());
    stuck.expect_all_done();
    EXPECT_TRUE(stuck.host.events().empty());
  }
}

// What it has got is not all, which no FIN may hide.
TEST_F(EndlessPeer, ThatReadsNothingFindsAReset) {
  StuckHost stuck(*engine);
  stuck.host.end_by(Host::Ending::kDisconnect);
  ASSERT_TRUE(stuck.host.wait_for_end());
  EXPECT_EQ(stuck.host.end_error(), ETIMEDOUT);
  bool reset = false;
  EXPECT_LT(stuck.peer.receive_all(&reset).size(), kCount * kMessage);
  EXPECT_TRUE(reset);
}

TEST_F(EndlessPeer, ThatReadsNothingIsLeftByADrainedQueuePair) {
  for (const bool by_number : {false, true}) {
    StuckHost stuck(*engine, by_number);
    ASSERT_EQ(stuck.host.modify(IBV_QPS_SQD), 0);
    ASSERT_TRUE(stuck.host.wait_for_end());
    stuck.expect_all_done();
  }
}

// A Terminate that has no room in the socket.
TEST_F(EndlessPeer, ThatReadsNothingIsLeftWithoutATerminate) {
  StuckHost stuck(*engine);
  stuck.host.qp->fail();
  ASSERT_TRUE(stuck.host.wait_for_end());
  stuck.expect_all_done();
  EXPECT_EQ(stuck.host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
}

TEST_F(EndlessPeer, ThatAnswersNoReadIsLeft) {
  Host host(*engine, {.initiator = true});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  Buffer sink(host.memory, pattern(8));
  ASSERT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 1).to(0x1000, 0x55)), 0);
  EXPECT_FALSE(peer.receive(52).empty());
  host.end_by(Host::Ending::kDisconnect);
  ASSERT_TRUE(host.wait_for_end());
  ASSERT_EQ(host.sent().size(), 1u);
  EXPECT_EQ(host.sent()[0].status, IBV_WC_WR_FLUSH_ERR);
}

// A peer whose Reads are answered with 1 MiB each.
struct Reader {
  explicit Reader(engine::Engine& engine)
      : host(engine, {.ird = 16}), source(host.memory, pattern(kRead)) {
    EXPECT_EQ(host.attach(sockets.ours), 0);
  }
  bool ask() {
    ++msn;
    return peer.send(
        fpdu(untagged(1, 1, msn, 0, read_request(msn, 0, kRead, source.stag(), source.start()))));
  }

  static constexpr uint32_t kRead = 1 << 20;
  uint32_t msn = 0;
  const SocketEnds sockets = connect_sockets();
  RawPeer peer{sockets.theirs};
  Host host;
  Buffer source;
};

// RFC 5041 6.2.1: what it has asked for is answered before the FIN. But it asks again before it is.
TEST_F(EndlessPeer, ThatAsksForEverMoreIsLeft) {
  size_t answer = 0;
  {
    Reader once(*engine);
    ASSERT_TRUE(once.ask());
    ASSERT_TRUE(wait_until([&] { return once.host.heard(); }));
    once.host.end_by(Host::Ending::kDisconnect);
    answer = once.peer.receive_all().size();
    ASSERT_GT(answer, Reader::kRead);
  }
  Reader endless(*engine);
  for (int i = 0; i < endless.host.options.ird; ++i) ASSERT_TRUE(endless.ask());
  // It has all of these, and cannot have answered them.
  ASSERT_TRUE(wait_until_nothing_moves(endless.peer.fd()));
  endless.host.end_by(Host::Ending::kDisconnect);
  const core::Nanoseconds start = core::now();
  // So slowly that there is always one that was not answered.
  while (endless.peer.receive(answer).size() == answer && endless.ask())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GT(core::now() - start, 2 * core::settings().close_timeout_ms * core::kMillisecond)
      << "it was to be answered at first";
  ASSERT_TRUE(endless.host.wait_for_end());
  EXPECT_EQ(endless.host.end_error(), ETIMEDOUT);
  endless.source.deregister();
}

// The answers would go before the Terminate.
TEST_F(EndlessPeer, ThatTakesNoAnswersIsLeftWhenItIsRefused) {
  Reader reader(*engine);
  for (int i = 0; i < reader.host.options.ird; ++i) ASSERT_TRUE(reader.ask());
  ASSERT_EQ(reader.host.post(SendWr(IBV_WR_SEND, {}, 1)), 0);
  const uint32_t stag = reader.source.stag() ^ 1;
  ASSERT_TRUE(reader.peer.send(fpdu(tagged(0, stag, reader.source.start(), Octets(8)))));
  ASSERT_TRUE(reader.host.wait_for_end());
  EXPECT_EQ(reader.host.sent().size(), 1u);
  EXPECT_EQ(reader.host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR});
  reader.source.deregister();
}

}  // namespace
}  // namespace uiw::test
