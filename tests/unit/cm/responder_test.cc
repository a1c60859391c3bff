// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The passive end against a peer that speaks by hand: conformance 2.1, 2.2, 4.2.
#include <fstream>
#include <thread>

#include "support/descriptor_limit.h"
#include "unit/cm/held_engine.h"
#include "unit/cm/rig.h"
#include "unit/engine/support.h"

namespace uiw::cm::test {
namespace {

class ResponderTest : public ConnectionTest {
 protected:
  // The peer is turned away without a word, and the listener goes on.
  void expect_closed_silently(RawPeer& peer) {
    EXPECT_EQ(Octets{}, peer.receive_all());
    RawPeer good = dial();
    destroy(request(good, request_frame()).id);
    EXPECT_EQ(0, channel_.queued());
  }
};

TEST_F(ResponderTest, EveryWrongKeyOctetEndsTheConnection) {  // MS-03
  new_listener(33);
  for (size_t i = 0; i < 16; ++i) {
    RawPeer peer = dial();
    Octets octets = RawPeer::encoded(request_frame());
    octets[i] ^= 1;
    peer.send(octets);
    peer.receive_all();
    EXPECT_EQ(0, channel_.queued()) << i;
  }
}

TEST_F(ResponderTest, ReplyKeyInARequestEndsTheConnection) {  // MS-05
  new_listener(33);
  RawPeer peer = dial();
  mpa::StartupFrame frame = request_frame();
  frame.kind = mpa::FrameKind::kReply;
  peer.send(frame);
  expect_closed_silently(peer);
}

// Whatever the order in which the engine finds their octets: those of the later ones wait when it
// has only just asked for the first ones'.
TEST_F(ResponderTest, RequestsComeInTheOrderOfTheirConnections) {
  constexpr uint8_t kCount = 40;
  new_listener(33);
  std::vector<RawPeer> peers;
  const auto request_of = [&](uint8_t i) {
    mpa::StartupFrame frame = request_frame();
    set_private_data(frame, Octets{i});
    peers[i].send(frame);
  };
  for (uint8_t i = 0; i < kCount / 2; ++i) peers.push_back(dial());
  settle();
  HeldEngine held(*engine_);
  for (uint8_t i = kCount / 2; i < kCount; ++i) peers.push_back(dial());
  for (uint8_t i = 0; i < kCount; ++i) request_of(i);
  held.release();
  for (uint8_t i = 0; i < kCount; ++i) {
    const Event event = channel_.expect(EventType::kConnectRequest);
    ASSERT_LE(1, event.param.private_data_len);
    EXPECT_EQ(i, event.param.private_data[0]);
    destroy(event.id);
  }
}

TEST_F(ResponderTest, SaysNothingBeforeTheApplicationAnswers) {  // MS-02
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  pollfd readable{peer.fd(), POLLIN, 0};
  EXPECT_EQ(0, poll(&readable, 1, 0));
  ASSERT_EQ(0, accept(event.id, 22, conn_param(2)));
  EXPECT_FALSE(peer.receive_frame(mpa::FrameKind::kReply).reject);
}

TEST_F(ResponderTest, SilentPeerIsClosedAndTheListenerLives) {  // MS-06
  settings_.request_timeout_ms = 30;
  new_listener(33);
  RawPeer peer = dial();
  expect_closed_silently(peer);
}

TEST_F(ResponderTest, DribblingDoesNotExtendTheTimeout) {  // MS-07
  settings_.request_timeout_ms = 50;
  new_listener(33);
  RawPeer peer = dial();
  // One octet whenever ten milliseconds went by without the end: all would take five seconds.
  mpa::StartupFrame frame = request_frame(1);
  frame.private_size = mpa::kMaxPrivateData;
  const Octets octets = RawPeer::encoded(frame);
  pollfd state{peer.fd(), POLLIN, 0};
  size_t sent = 0;
  while (sent < octets.size() && poll(&state, 1, 10) == 0) {
    peer.send({octets[sent++]});
  }
  EXPECT_LT(sent, octets.size());
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(ResponderTest, AnySegmentation) {  // MS-11
  new_listener(33);
  RawPeer peer = dial();
  mpa::StartupFrame frame = request_frame();
  set_private_data(frame, Octets{1, 2, 3, 4, 5});
  for (uint8_t octet : RawPeer::encoded(frame)) peer.send({octet});
  EXPECT_EQ(std::string("\1\2\3\4\5"), data_of(channel_.expect(EventType::kConnectRequest).param));
}

TEST_F(ResponderTest, EveryTruncationThenFinIsNoRequest) {  // MS-10
  new_listener(33);
  mpa::StartupFrame frame = request_frame();
  set_private_data(frame, Octets{1, 2, 3});
  const Octets whole = RawPeer::encoded(frame);
  for (size_t size = 0; size < whole.size(); ++size) {
    RawPeer peer = dial();
    if (size > 0) peer.send(Octets(whole.begin(), whole.begin() + static_cast<long>(size)));
    peer.finish_sending();
    EXPECT_EQ(Octets{}, peer.receive_all()) << size;
  }
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(ResponderTest, LengthErrors) {  // MS-08, ME-04
  new_listener(33);
  for (int length : {513, 0xffff, 0, 1, 2, 3}) {  // with S=1 the block must fit
    RawPeer peer = dial();
    Octets octets = RawPeer::encoded(request_frame());
    octets[18] = static_cast<uint8_t>(length >> 8);
    octets[19] = static_cast<uint8_t>(length);
    octets.resize(20);
    peer.send(octets);
    EXPECT_EQ(Octets{}, peer.receive_all()) << length;
  }
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(ResponderTest, PrivateDataOfEverySizeIsDeliveredAsFarAsItFits) {  // MS-09
  new_listener(33);
  for (uint16_t size : {0, 1, 255, 256, 511, 512}) {
    RawPeer peer = dial();
    mpa::StartupFrame frame = request_frame(1);
    frame.private_size = size;
    for (size_t i = 0; i < size; ++i) frame.private_data[i] = static_cast<uint8_t>(i * 7 + 1);
    const Event event = request(peer, frame);
    EXPECT_EQ(std::min<int>(size, 255), event.param.private_data_len);
    EXPECT_EQ(0,
              memcmp(frame.private_data, event.param.private_data, event.param.private_data_len));
    destroy(event.id);
  }
}

TEST_F(ResponderTest, OctetsBehindTheRequestEndTheConnection) {  // MS-12
  new_listener(33);
  RawPeer peer = dial();
  Octets octets = RawPeer::encoded(request_frame());
  octets.insert(octets.end(), 4, 0);
  peer.send(octets);
  expect_closed_silently(peer);
}

TEST_F(ResponderTest, OctetsBeforeTheAnswerMakeAcceptFail) {
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  peer.send({0, 0, 0, 0});
  EXPECT_EQ(Octets{}, peer.receive_all());
  EXPECT_EQ(ECONNRESET, accept(event.id, 22, conn_param(2)));
  EXPECT_EQ(0u, destroy(event.id));
}

TEST_F(ResponderTest, PeerThatGoesBeforeTheAnswerMakesAcceptFail) {
  new_listener(33);
  for (bool reset : {false, true}) {
    RawPeer peer = dial();
    const Event event = request(peer, request_frame());
    if (reset) {
      peer.reset();
    } else {
      peer.finish_sending();
      EXPECT_EQ(Octets{}, peer.receive_all());
    }
    // The reset may not have been noticed yet; then it is before the Reply goes out, or after it.
    const int error = accept(event.id, 22, conn_param(2 + reset));
    if (error == 0) {
      const Event end = channel_.next();
      EXPECT_EQ(end.status, end.type == EventType::kDisconnected ? 0 : -ECONNRESET);
    } else {
      EXPECT_EQ(ECONNRESET, error);
    }
    EXPECT_EQ(0, manager_.reject(channel_.channel, event.id, {}) & ~EINVAL);
    destroy(event.id);
  }
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(ResponderTest, UnknownRevisionsAreClosed) {  // MS-16
  new_listener(33);
  for (int revision : {0, 3, 255}) {
    RawPeer peer = dial();
    Octets octets = RawPeer::encoded(request_frame());
    octets[17] = static_cast<uint8_t>(revision);
    peer.send(octets);
    EXPECT_EQ(Octets{}, peer.receive_all()) << revision;
  }
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(ResponderTest, ReservedBitsAndRejectBitAreNotLookedAt) {  // MS-14, MS-15
  new_listener(33);
  RawPeer peer = dial();
  Octets octets = RawPeer::encoded(request_frame());
  octets[16] |= 0x2f;
  peer.send(octets);
  const Event event = channel_.expect(EventType::kConnectRequest);
  ASSERT_EQ(0, accept(event.id, 22, conn_param(2)));
  const Octets reply = peer.receive(24);
  ASSERT_EQ(24u, reply.size());
  EXPECT_EQ(0, reply[16] & 0x2f);
}

TEST_F(ResponderTest, AnswersInTheFormItWasAsked) {  // ME-02, ME-03
  new_listener(33);
  uint32_t qp = 2;
  for (uint8_t revision : {1, 2}) {
    for (bool enhanced : {false, true}) {
      if (revision == 1 && enhanced) continue;
      RawPeer peer = dial();
      mpa::StartupFrame frame = request_frame(revision);
      if (!enhanced) frame.enhanced.reset();
      const Event event = request(peer, frame);
      ASSERT_EQ(0, accept(event.id, 22, conn_param(qp++, "x")));
      const mpa::StartupFrame reply = peer.receive_frame(mpa::FrameKind::kReply);
      EXPECT_EQ(revision, reply.revision);
      EXPECT_EQ(enhanced, reply.enhanced.has_value());
      EXPECT_EQ(1, reply.private_size);
      EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
      peer.close();
      channel_.expect(EventType::kDisconnected);
    }
  }
}

TEST_F(ResponderTest, MarkersAreAgreedPerDirection) {  // MS-25, MS-26
  new_listener(33);
  uint32_t qp = 1;
  for (bool own : {false, true}) {
    engine_->run_sync([&] { settings_.mpa_markers = own; });  // it reads them
    for (bool theirs : {false, true}) {
      ++qp;
      RawPeer peer = dial();
      mpa::StartupFrame frame = request_frame();
      frame.markers = theirs;
      const Event event = request(peer, frame);
      ASSERT_EQ(0, accept(event.id, 22, conn_param(qp)));
      EXPECT_EQ(own, peer.receive_frame(mpa::FrameKind::kReply).markers);
      engine_->run_sync([&] {
        EXPECT_EQ(theirs, qps_.at(qp).agreed.tx_markers);
        EXPECT_EQ(own, qps_.at(qp).agreed.rx_markers);
      });
      peer.close();
      channel_.expect(EventType::kEstablished);
      channel_.expect(EventType::kDisconnected);
    }
  }
}

// An initiator that has its own ESTABLISHED may connect again before its RTR frame has come.
TEST_F(ResponderTest, EstablishedComesWithTheReplyAndBeforeTheNextRequest) {
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  ASSERT_EQ(0, accept(event.id, 22, conn_param(2)));
  EXPECT_TRUE(peer.receive_frame(mpa::FrameKind::kReply).enhanced->peer_to_peer);
  RawPeer next = dial();
  next.send(request_frame());
  EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
  EXPECT_EQ(33u, channel_.expect(EventType::kConnectRequest).uid);
  peer.finish_sending();
  EXPECT_EQ(22u, channel_.expect(EventType::kDisconnected).uid);
}

TEST_F(ResponderTest, PeerThatGoesBeforeItsFirstFpduIsADisconnect) {
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  ASSERT_EQ(0, accept(event.id, 22, conn_param(2)));
  peer.receive_frame(mpa::FrameKind::kReply);
  peer.close();
  EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
  EXPECT_EQ(22u, channel_.expect(EventType::kDisconnected).uid);
}

TEST_F(ResponderTest, PeerThatNeverSendsItsFirstFpduIsDisconnected) {
  settings_.reply_timeout_ms = 30;
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  ASSERT_EQ(0, accept(event.id, 22, conn_param(2)));
  peer.receive_frame(mpa::FrameKind::kReply);
  EXPECT_EQ(Octets{}, peer.receive_all());
  peer.close();
  EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
  EXPECT_EQ(22u, channel_.expect(EventType::kDisconnected).uid);
}

TEST_F(ResponderTest, AnAcceptThatNamesNothingLeavesTheRequestStanding) {
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  EXPECT_EQ(EINVAL, accept(event.id, 0, conn_param(2)));  // no uid
  EXPECT_EQ(ENOENT, accept(event.id + 1000, 22, conn_param(2)));
  EXPECT_EQ(0, accept(event.id, 22, conn_param(2, std::string(251, 'x'))));
  EXPECT_EQ(251, peer.receive_frame(mpa::FrameKind::kReply).private_size);
  EXPECT_EQ(EINVAL, accept(event.id, 22, conn_param(3)));  // it is accepted
}

TEST_F(ResponderTest, ARefusedAcceptRejects) {
  new_listener(33);
  ASSERT_EQ(0, qps_.claim(7));
  for (const ConnParam& param : {conn_param(1234),                         // no such queue pair
                                 conn_param(7),                            // it has a connection
                                 conn_param(2, std::string(252, 'x'))}) {  // ME-06
    RawPeer peer = dial();
    const Event event = request(peer, request_frame());
    EXPECT_EQ(EINVAL, accept(event.id, 22, param));
    const mpa::StartupFrame reply = peer.receive_frame(mpa::FrameKind::kReply);
    EXPECT_TRUE(reply.reject);
    EXPECT_EQ(0, reply.private_size);
    EXPECT_EQ(Octets{}, peer.receive_all());
    EXPECT_EQ(EINVAL, accept(event.id, 22, conn_param(2)));
    EXPECT_EQ(EINVAL, manager_.reject(channel_.channel, event.id, {}));
  }
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(ResponderTest, RejectSaysWhyAndCloses) {  // MS-18
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  ASSERT_EQ(0, manager_.reject(channel_.channel, event.id, Octets(255, 'n')));
  const mpa::StartupFrame reply = peer.receive_frame(mpa::FrameKind::kReply);
  EXPECT_TRUE(reply.reject);
  EXPECT_EQ(255, reply.private_size);
  EXPECT_EQ(Octets{}, peer.receive_all());
  EXPECT_EQ(EINVAL, manager_.reject(channel_.channel, event.id, {}));
  EXPECT_EQ(0, channel_.queued());
}

// A listener that holds 20 connections without a Request, as it does where few descriptors are
// allowed.
class FewDescriptors : public ResponderTest {
 protected:
  uint32_t new_small_listener() {
    const uiw::test::DescriptorLimit few(64);
    return new_listener(33);
  }
  std::vector<RawPeer> dial_often(size_t count) {
    std::vector<RawPeer> peers;
    while (peers.size() < count) peers.push_back(dial());
    return peers;
  }
};

TEST_F(FewDescriptors, FloodOfSilentConnectionsIsCapped) {
  const uint32_t listener = new_small_listener();
  settle();  // it listens, with all descriptors of its own
  const int descriptors = uiw::test::open_descriptors();
  std::vector<RawPeer> silent = dial_often(100);
  settle();
  EXPECT_LE(uiw::test::open_descriptors(), descriptors + 100 + 20);
  // The first to come have been the first to go, and a peer in good faith is served.
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(Octets{}, silent[i].receive_all());
  RawPeer good = dial();
  request(good, request_frame());
  destroy(listener);
  for (RawPeer& peer : silent) EXPECT_EQ(Octets{}, peer.receive_all());
}

// All are connected before the first one sends its Request.
TEST_F(FewDescriptors, ThoseWhoConnectAtTheSameTimeAreAllServed) {
  settings_.request_timeout_ms = 3'600'000;
  new_small_listener();
  std::vector<RawPeer> peers = dial_often(100);
  settle();
  for (RawPeer& peer : peers) {
    peer.send(request_frame());
    destroy(channel_.expect(EventType::kConnectRequest).id);
  }
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(FewDescriptors, RequestsThatNobodyFetchesAreCapped) {
  new_small_listener();
  std::vector<RawPeer> peers = dial_often(20);
  settle();
  for (RawPeer& peer : peers) {
    peer.send(request_frame());
    settle();  // in this order
  }
  // A quarter of the 16 that all listeners may queue is left for another one.
  for (size_t i = 12; i < peers.size(); ++i)
    EXPECT_TRUE(peers[i].receive_frame(mpa::FrameKind::kReply).reject);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(TCP_ESTABLISHED, peers[i].state());
    destroy(channel_.expect(EventType::kConnectRequest).id);
  }
  EXPECT_EQ(0, channel_.queued());
}

// Who was refused is given time to close. But the oldest goes when there are too many.
TEST_F(FewDescriptors, ThoseWhoAreRefusedAndStayAreCapped) {
  settings_.close_timeout_ms = 3'600'000;
  new_listener(33);
  settle();
  const int descriptors = uiw::test::open_descriptors();
  constexpr size_t kPeers = 60;
  constexpr uint32_t kMost = 25;
  const uiw::test::DescriptorLimit few(16 * kMost);
  std::vector<RawPeer> peers = dial_often(kPeers);
  for (RawPeer& peer : peers) {
    const Event event = request(peer, request_frame());
    ASSERT_EQ(0, manager_.reject(channel_.channel, event.id, {}));
    EXPECT_TRUE(peer.receive_frame(mpa::FrameKind::kReply).reject);
  }
  settle();
  ASSERT_LE(uiw::test::open_descriptors(), descriptors + static_cast<int>(kPeers + kMost));
  // A socket that nobody has any more answers octets by a reset.
  while (peers[kPeers - kMost - 1].state() != TCP_CLOSE) peers[kPeers - kMost - 1].send(Octets{1});
  for (size_t i = kPeers - kMost; i < kPeers; ++i) peers[i].send(Octets{1});
  settle();
  for (size_t i = kPeers - kMost; i < kPeers; ++i) EXPECT_EQ(TCP_CLOSE_WAIT, peers[i].state()) << i;
}

// TCP makes who finds its queue full come again after a second, then after two, and so on.
TEST_F(ResponderTest, ThousandsWaitForTheEngine) {
  constexpr rlim_t kMany = 2000;
  int allowed = 0;
  if (std::ifstream("/proc/sys/net/core/somaxconn") >> allowed; allowed < SOMAXCONN)
    GTEST_SKIP() << "net.core.somaxconn is " << allowed;
  const rlim_t most = uiw::test::DescriptorLimit::most();
  if (most < 2 * kMany + 100) GTEST_SKIP() << "ulimit -Hn is " << most;
  const uiw::test::DescriptorLimit enough(most);
  const uint32_t listener = new_listener(33);
  settle();
  HeldEngine held(*engine_);
  std::vector<RawPeer> peers;
  while (peers.size() < kMany && !HasFatalFailure()) peers.push_back(dial());
  held.release();
  destroy(listener);
}

}  // namespace
}  // namespace uiw::cm::test
