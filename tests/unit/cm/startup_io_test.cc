// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Frames in and out of streams, the last one before the end included.
#include "cm/startup_closer.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

TEST(FrameCollector, EverySplitInTwoLeavesTheSameFrameAndRest) {
  mpa::StartupFrame frame = request_frame();
  set_private_data(frame, Octets{1, 2, 3, 4, 5, 6});
  Octets octets = RawPeer::encoded(frame);
  const size_t size = octets.size();
  octets.insert(octets.end(), 700, 0x5a);  // more than a frame can be
  for (size_t cut = 0; cut < size; ++cut) {
    FrameCollector collector;
    mpa::StartupFrame out;
    EXPECT_TRUE(collector.empty());
    core::Bytes first(octets.data(), cut), second(octets.data() + cut, octets.size() - cut);
    ASSERT_EQ(mpa::ParseStatus::kNeedMore, collector.feed(first, mpa::FrameKind::kRequest, out));
    EXPECT_EQ(cut == 0, collector.empty());
    ASSERT_EQ(mpa::ParseStatus::kComplete, collector.feed(second, mpa::FrameKind::kRequest, out));
    EXPECT_EQ(6, out.private_size);
    ASSERT_EQ(700u, second.size());
    EXPECT_EQ(0x5a, second[0]);
  }
}

TEST(Wishes, FollowTheSettings) {
  core::Settings settings;
  ConnParam param;
  param.responder_resources = 3;
  param.initiator_depth = 200;
  EXPECT_TRUE(wishes_for(settings, false, param).crc);
  EXPECT_FALSE(wishes_for(settings, true, param).crc);
  settings.crc = core::CrcPolicy::kOff;
  EXPECT_FALSE(wishes_for(settings, false, param).crc);
  settings.crc = core::CrcPolicy::kOn;
  EXPECT_TRUE(wishes_for(settings, true, param).crc);
  EXPECT_EQ(3, wishes_for(settings, true, param).ird);
  EXPECT_EQ(200, wishes_for(settings, true, param).ord);
  EXPECT_EQ(128, wishes_for(settings, true, param).max_ord);
}

// A stream whose socket is full, and the other end of it.
class FullSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    ours_ = fds[0];
    peer_ = RawPeer(fds[1]);
    const uint8_t octets[1024] = {};
    ssize_t sent;
    while ((sent = ::send(ours_, octets, sizeof octets, MSG_DONTWAIT)) > 0) {
      filling_ += static_cast<size_t>(sent);
    }
    auto acquired = engine::EngineRef::acquire();
    ASSERT_TRUE(acquired.has_value());
    engine_ = std::move(*acquired);
  }

  engine::EngineRef engine_;
  int ours_ = -1;
  RawPeer peer_{-1};
  size_t filling_ = 0;
};

TEST_F(FullSocketTest, OutboxGoesOnWhenThereIsRoom) {
  engine_->run_sync([&] {
    StreamPtr stream = transport::TcpStream::adopt(*engine_, ours_);
    Outbox outbox;
    outbox.set(Octets{1, 2, 3});
    EXPECT_EQ(EAGAIN, outbox.flush(*stream));
    EXPECT_EQ(filling_, peer_.receive(filling_).size());
    EXPECT_EQ(0, outbox.flush(*stream));
    EXPECT_EQ(0, outbox.flush(*stream));
    EXPECT_EQ((Octets{1, 2, 3}), peer_.receive(3));
    peer_.close();
    outbox.set(Octets{1});
    EXPECT_EQ(EPIPE, outbox.flush(*stream));
  });
}

TEST_F(FullSocketTest, TheLastFrameWaitsForRoom) {
  engine_->run_sync([&] {
    send_reject(*engine_, transport::TcpStream::adopt(*engine_, ours_), request_frame(),
                60 * core::kSecond);
  });
  EXPECT_EQ(filling_, peer_.receive(filling_).size());
  EXPECT_EQ(RawPeer::encoded(request_frame()), peer_.receive_all());
}

TEST_F(FullSocketTest, TheLastFrameIsGivenUpInTheEnd) {
  engine_->run_sync([&] {
    send_reject(*engine_, transport::TcpStream::adopt(*engine_, ours_), request_frame(),
                20 * core::kMillisecond);
  });
  // The end is what comes after the filling only when the frame was not waited for any more.
  pollfd hang_up{peer_.fd(), POLLRDHUP, 0};
  EXPECT_EQ(1, poll(&hang_up, 1, -1));
  EXPECT_EQ(filling_, peer_.receive_all().size());
}

TEST_F(FullSocketTest, TheLastFrameToAPeerThatHasGone) {
  engine_->run_sync([&] {
    send_reject(*engine_, transport::TcpStream::adopt(*engine_, ours_), request_frame(),
                60 * core::kSecond);
  });
  peer_.close();
  engine_ = {};  // joins the engine: would hang or leak if the frame still waited
}

TEST(Addresses, Questions) {
  EXPECT_TRUE(transport::is_wildcard(ip("0.0.0.0", 1)));
  EXPECT_TRUE(transport::is_wildcard(ip("::", 1)));
  EXPECT_FALSE(transport::is_wildcard(ip("127.0.0.1", 1)));
  EXPECT_EQ(1, transport::port_of(ip("::1", 1)));
  EXPECT_EQ(0, transport::port_of(sockaddr_storage{}));
  EXPECT_EQ(0u, transport::length_of(sockaddr_storage{}));
  EXPECT_TRUE(transport::is_link_local_without_scope(ip("fe80::1", 1)));
  sockaddr_storage scoped = ip("fe80::1", 1);
  reinterpret_cast<sockaddr_in6&>(scoped).sin6_scope_id = 1;
  EXPECT_FALSE(transport::is_link_local_without_scope(scoped));
  EXPECT_FALSE(transport::same_host(scoped, ip("fe80::1", 1)));
  EXPECT_TRUE(transport::same_host(ip("127.0.0.1", 1), ip("127.0.0.1", 2)));
  EXPECT_FALSE(transport::same_host(ip("127.0.0.1", 1), ip("::1", 1)));
  EXPECT_TRUE(transport::same_host(transport::without_v4_mapping(ip("::ffff:127.0.0.1", 5)),
                                   ip("127.0.0.1", 0)));
  EXPECT_EQ(5, transport::port_of(transport::without_v4_mapping(ip("::ffff:127.0.0.1", 5))));
  EXPECT_EQ(AF_INET6, transport::without_v4_mapping(ip("::1", 5)).ss_family);
}

TEST(Addresses, SocketErrorsAreReported) {
  EXPECT_EQ(EADDRNOTAVAIL, transport::open_connect_socket(ip("192.0.2.77", 0), -1).error());
  RawPeer listener;
  EXPECT_EQ(EADDRINUSE, transport::open_connect_socket(listener.listen(), -1).error());
  for (const char* host : {"127.0.0.1", "::1"}) {
    core::Result<int> fd = transport::open_connect_socket(ip(host, 0), 8);
    ASSERT_TRUE(fd.has_value());
    int tos = 0;
    socklen_t size = sizeof tos;
    const bool v6 = std::strchr(host, ':') != nullptr;
    EXPECT_EQ(
        0, getsockopt(*fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos, &size));
    EXPECT_EQ(8, tos);
    close(*fd);
  }
}

}  // namespace
}  // namespace uiw::cm::test
