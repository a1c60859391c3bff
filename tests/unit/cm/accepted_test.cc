// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What happens between rdma_accept() and the engine's part of it.
#include <optional>
#include <thread>

#include "unit/cm/held_engine.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

class Accepted : public ConnectionTest {
 protected:
  // Accepts for queue pair 2 with uid 22 while the engine does nothing.
  uint32_t accept_held() {
    new_listener(33);
    peer_ = dial();
    const Event event = request(peer_, request_frame());
    held_.emplace(*engine_);
    EXPECT_EQ(0, accept(event.id, 22, conn_param(2)));
    return event.id;
  }

  RawPeer peer_;
  std::optional<HeldEngine> held_;
};

TEST_F(Accepted, IsAnsweredByTheEngine) {
  accept_held();
  EXPECT_EQ(-1, recv(peer_.fd(), nullptr, 0, MSG_DONTWAIT | MSG_PEEK));
  held_->release();
  EXPECT_FALSE(peer_.receive_frame(mpa::FrameKind::kReply).reject);
}

TEST_F(Accepted, PeerThatHasGoneIsAConnectError) {
  for (bool reset : {false, true}) {
    accept_held();
    if (reset) {
      peer_.reset();
    } else {
      peer_.finish_sending();
    }
    held_->release();
    EXPECT_EQ(22u, channel_.expect(EventType::kConnectError, -ECONNRESET).uid);
    settle();
    EXPECT_EQ(std::vector<uint32_t>{2}, qps_.abandoned);
    qps_ = {};
    qps_.engine = &*engine_;
  }
}

TEST_F(Accepted, QueuePairThatHasGoneIsAConnectError) {  // ME-22
  accept_held();
  qps_.gone = 2;
  held_->release();
  peer_.receive_frame(mpa::FrameKind::kReply);
  const Octets said = peer_.receive_all();  // T(2005)
  ASSERT_EQ(28u, said.size());
  EXPECT_EQ(0x47, said[3]);
  EXPECT_EQ(0x2005, said[20] << 8 | said[21]);
  EXPECT_EQ(22u, channel_.expect(EventType::kConnectError, -EINVAL).uid);
  settle();
  EXPECT_EQ(std::vector<uint32_t>{2}, qps_.abandoned);
}

TEST_F(Accepted, DisconnectingComesBehindTheReply) {
  const uint32_t id = accept_held();
  EXPECT_EQ(0, disconnect(id));
  held_->release();
  peer_.receive_frame(mpa::FrameKind::kReply);
  EXPECT_EQ(Octets{}, peer_.receive_all());
  settle();
  EXPECT_EQ(1, qps_.at(2).disconnects);
  peer_.close();
  EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
  EXPECT_EQ(22u, channel_.expect(EventType::kDisconnected).uid);
}

TEST_F(Accepted, DestroyingItsIdComesBehindTheReply) {
  destroy(accept_held());
  held_->release();
  EXPECT_FALSE(peer_.receive_frame(mpa::FrameKind::kReply).reject);
  EXPECT_EQ(Octets{}, peer_.receive_all());
  peer_.close();
  settle();
  EXPECT_EQ(0, channel_.queued());
  EXPECT_TRUE(qps_.abandoned.empty());
}

TEST_F(Accepted, ClosingTheChannelComesBehindTheReply) {
  accept_held();
  std::thread closing([this] { channel_.close(); });
  held_->release();
  EXPECT_FALSE(peer_.receive_frame(mpa::FrameKind::kReply).reject);
  EXPECT_EQ(Octets{}, peer_.receive_all());
  closing.join();
}

}  // namespace
}  // namespace uiw::cm::test
