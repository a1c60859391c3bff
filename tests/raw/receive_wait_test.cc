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
