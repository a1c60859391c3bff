// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is waited for, and for how long (ctest sets that): a receive for a Send, a peer that has
// closed.
#include <gtest/gtest.h>

#include "core/settings.h"
#include "support/host.h"

namespace uiw::test {
namespace {

class ReceiveWait : public testing::Test {
 protected:
  ReceiveWait() : engine(std::move(*engine::Engine::start())), host(*engine) {
    const SocketEnds sockets = connect_sockets();
    peer = std::make_unique<RawPeer>(sockets.theirs);
    EXPECT_EQ(host.attach(sockets.ours), 0);
  }
  void SetUp() override {
    ASSERT_LT(core::settings().rnr_wait_ms, 1000u) << "run by ctest, which sets the environment";
    ASSERT_GT(core::settings().rnr_wait_ms, 0u);
  }
  std::unique_ptr<engine::Engine> engine;
  Host host;
  std::unique_ptr<RawPeer> peer;
};

TEST_F(ReceiveWait, EndsWithTheFaultOfAStrictReceiver) {
  const Octets send = untagged(3, 0, 1, 0, pattern(10));
  ASSERT_TRUE(peer->send(fpdu(send)));
  ASSERT_TRUE(peer->send(vector("V17-write-zero").octets));  // has to wait as well
  Octets body = {0x12, 0x02, 0xc0, 0x00, 0x00, 28};
  body.insert(body.end(), send.begin(), send.begin() + 18);
  bool reset = true;
  EXPECT_EQ(to_hex(peer->receive_all(&reset)), to_hex(fpdu(untagged(7, 2, 1, 0, body))));
  EXPECT_FALSE(reset);
  peer->finish();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
  EXPECT_EQ(host.end_error(), EPROTO);
}

TEST_F(ReceiveWait, EndsAlsoWhenThePeerHasClosedMeanwhile) {
  ASSERT_TRUE(peer->send(fpdu(untagged(3, 0, 1, 0, pattern(10)))));
  peer->finish();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
}

// The end of the stream is behind the Send, and not a request fails to be sent: the Read waits for
// its answer. As in InfiniBand it says that the peer has gone.
TEST_F(ReceiveWait, EndsByNumberWithTheRequestThatMissesThePeer) {
  for (const bool for_ever : {false, true}) {
    SCOPED_TRACE(for_ever);
    Host other(*engine);
    ASSERT_EQ(other.qp->expect_peer(), 0);
    ASSERT_EQ(other.modify(IBV_QPS_RTS), 0);
    other.qp->await_receives(for_ever);
    const SocketEnds sockets = connect_sockets();
    RawPeer gone(sockets.theirs);
    ASSERT_EQ(other.attach(sockets.ours), 0);
    ASSERT_TRUE(gone.send(fpdu(untagged(3, 0, 1, 0, pattern(10)))));
    ASSERT_TRUE(wait_until([&] { return other.heard(); }));
    gone.close();
    Buffer sink(other.memory, 8);
    for (uint64_t i = 0; i < 2; ++i)
      ASSERT_EQ(other.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, i).to(0x1000, 0x55)), 0);
    ASSERT_TRUE(wait_until([&] { return other.sent().size() == 2; }));
    EXPECT_EQ(other.sent()[0].status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(other.sent()[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(other.state(), IBV_QPS_ERR);
    EXPECT_TRUE(other.events().empty());
  }
}

// rdma_cm: what is outstanding says why, and not that a receive was missing.
TEST_F(ReceiveWait, EndsWithTheConnection) {
  Buffer sink(host.memory, 8);
  ASSERT_TRUE(peer->send(fpdu(untagged(3, 0, 1, 0, pattern(10)))));
  ASSERT_TRUE(wait_until([&] { return host.heard(); }));
  ASSERT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x1000, 0x55)), 0);
  peer->reset();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.end_error(), ECONNRESET);
  EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
  ASSERT_EQ(host.sent().size(), 1u);
  EXPECT_EQ(host.sent()[0].vendor_err, static_cast<uint32_t>(core::Cause::kConnectionBroken));
}

// The program has ended the connection itself: that is no error, nor is it to wait any longer.
TEST_F(ReceiveWait, EndsInGoodOrderAfterADisconnect) {
  for (const bool for_ever : {false, true}) {
    SCOPED_TRACE(for_ever);
    Host other(*engine);
    other.qp->await_receives(for_ever);
    const SocketEnds sockets = connect_sockets();
    RawPeer slow(sockets.theirs);
    ASSERT_EQ(other.attach(sockets.ours), 0);
    ASSERT_EQ(other.receive(RecvWr({}, 1)), 0);
    ASSERT_TRUE(slow.send(fpdu(untagged(3, 0, 1, 0, {}))));
    ASSERT_TRUE(slow.send(fpdu(untagged(3, 0, 2, 0, pattern(10)))));
    ASSERT_TRUE(wait_until([&] { return other.received().size() == 1; }));
    other.end_by(Host::Ending::kDisconnect);
    bool reset = true;
    EXPECT_TRUE(slow.receive_all(&reset).empty());
    EXPECT_FALSE(reset);
    ASSERT_TRUE(other.wait_for_end());
    EXPECT_EQ(other.end_error(), 0);
    EXPECT_TRUE(other.events().empty());
    // What it says now is no reason for a reset.
    ASSERT_TRUE(slow.send(vector("V17-write-zero").octets));
    slow.finish();
    slow.receive_all(&reset);
    EXPECT_FALSE(reset);
  }
}

// Who would wait for ever does not for a peer that has disconnected.
TEST_F(ReceiveWait, EndsByADisconnectThoughItIsForEver) {
  host.qp->await_receives(true);
  ASSERT_TRUE(peer->send(fpdu(untagged(3, 0, 1, 0, pattern(10)))));
  peer->finish();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.end_error(), 0);
  EXPECT_TRUE(host.events().empty());
}

TEST_F(ReceiveWait, CanBeDestroyedWhileItWaits) {
  ASSERT_TRUE(peer->send(fpdu(untagged(3, 0, 1, 0, pattern(10)))));
  ASSERT_TRUE(wait_until([&] { return host.heard(); }));
  host.destroy();
  EXPECT_TRUE(peer->receive_all().empty());
}

// TD-10: a peer that has closed its side may take its time with what it asked for, if only it takes
// it.
TEST_F(ReceiveWait, ASlowReaderThatHasClosedGetsItsWholeAnswer) {
  ASSERT_LE(core::settings().close_timeout_ms, 1500u);
  const int narrow =
      128 << 10;  // more than a segment, or the kernel's window probes would set the pace
  setsockopt(peer->fd(), SOL_SOCKET, SO_RCVBUF, &narrow, sizeof narrow);
  Buffer source(host.memory, pattern(24 << 20));
  ASSERT_TRUE(peer->send(
      fpdu(untagged(1, 1, 1, 0, read_request(9, 0, 24 << 20, source.stag(), source.start())))));
  peer->finish();
  Octets got;
  const auto enough = std::chrono::steady_clock::now() +
                      std::chrono::milliseconds(2 * core::settings().close_timeout_ms);
  while (std::chrono::steady_clock::now() < enough) {
    // At most 12 MiB in that time: the answer lasts longer than the timer.
    const Octets piece = peer->receive(4096);
    got.insert(got.end(), piece.begin(), piece.end());
    usleep(1000);
  }
  EXPECT_FALSE(host.ended());
  const Octets rest = peer->receive_all();
  got.insert(got.end(), rest.begin(), rest.end());
  size_t octets = 0;
  for (const Octets& ulpdu : ulpdus_of(got)) octets += ulpdu.size() - 14;
  EXPECT_EQ(octets, size_t{24} << 20);
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.end_error(), 0);
}

}  // namespace
}  // namespace uiw::test
