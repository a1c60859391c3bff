// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An initiator whose peer says nothing: Linux siw may have overlooked the first FPDU, and looks
// again when another one comes.
#include <gtest/gtest.h>

#include <thread>

#include "core/settings.h"
#include "support/host.h"

namespace uiw::test {
namespace {

class SilentPeer : public testing::Test {
 protected:
  SilentPeer() : engine(std::move(*engine::Engine::start())) {}

  const Octets empty_write = vector("V17-write-zero").octets;
  std::unique_ptr<engine::Engine> engine;
};

TEST_F(SilentPeer, IsSentThreeEmptyWritesThatNobodyIsToldOf) {
  Host host(*engine, {.initiator = true, .rtr = mpa::Rtr::kWrite});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  // The RTR, and three more.
  EXPECT_EQ(to_hex(peer.receive(4 * empty_write.size())),
            to_hex(concat(concat(empty_write, empty_write), concat(empty_write, empty_write))));
  EXPECT_TRUE(host.sent().empty());
  // Nothing else comes before what is posted now.
  ASSERT_EQ(host.post(SendWr(IBV_WR_SEND, {}, 1)), 0);
  EXPECT_EQ(to_hex(peer.receive(24)), to_hex(fpdu(untagged(3, 0, 1, 0, {}))));
  ASSERT_TRUE(wait_until([&] { return host.sent().size() == 1; }));
}

TEST_F(SilentPeer, IsSentThemBetweenMessagesWithoutAnRtrToo) {
  Host host(*engine, {.initiator = true});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  ASSERT_EQ(host.post(SendWr(IBV_WR_SEND, {}, 1)), 0);
  EXPECT_EQ(to_hex(peer.receive(24 + empty_write.size())),
            to_hex(concat(fpdu(untagged(3, 0, 1, 0, {})), empty_write)));
}

// Who was slow to answer the Request is given as long again, and twice: it may have others to look
// after.
TEST_F(SilentPeer, IsGivenTimeWhenItWasSlowBefore) {
  Host host(*engine, {.initiator = true, .rtr = mpa::Rtr::kWrite});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  transport::StreamPtr stream = transport::TcpStream::adopt(*engine, sockets.ours);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const core::Nanoseconds start = core::now();
  ASSERT_EQ(host.attach(std::move(stream)), 0);
  EXPECT_EQ(to_hex(peer.receive(2 * empty_write.size())), to_hex(concat(empty_write, empty_write)));
  EXPECT_GE(core::now() - start, 60 * core::kMillisecond);
}

TEST_F(SilentPeer, IsLeftAloneOnceItHasSpoken) {
  Host host(*engine, {.initiator = true, .rtr = mpa::Rtr::kWrite});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours, empty_write), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // one would have come after 10
  ASSERT_EQ(host.post(SendWr(IBV_WR_SEND, {}, 1)), 0);
  EXPECT_EQ(to_hex(peer.receive(empty_write.size() + 24)),
            to_hex(concat(empty_write, fpdu(untagged(3, 0, 1, 0, {})))));
}

TEST_F(SilentPeer, OfAResponderGetsNothing) {
  Host host(*engine, {.initiator = false});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours, empty_write), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_EQ(host.post(SendWr(IBV_WR_SEND, {}, 1)), 0);
  EXPECT_EQ(to_hex(peer.receive(24)), to_hex(fpdu(untagged(3, 0, 1, 0, {}))));
}

}  // namespace
}  // namespace uiw::test
