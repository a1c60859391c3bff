// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The active end against a peer that speaks by hand: conformance 2.1, 2.2, 4.1.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <semaphore>
#include <string_view>

#include "core/crc32c.h"
#include "support/vectors.h"
#include "unit/cm/held_engine.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

using uiw::test::from_hex;

class InitiatorTest : public ConnectionTest {
 protected:
  void SetUp() override {
    ConnectionTest::SetUp();
    to_ = listener_.listen();
  }
  // Connects id_ (uid 11) by QP 1 and takes the TCP connection.
  RawPeer start(const std::string& data = "", uint8_t ird = 4, uint8_t ord = 4) {
    id_ = new_resolved(11, to_);
    EXPECT_EQ(0, connect(id_, conn_param(1, data, ird, ord)));
    return listener_.accept();
  }
  mpa::StartupFrame reply_to(const mpa::StartupFrame& request, uint16_t depth = 16) {
    mpa::Wishes wishes;
    wishes.crc = false;
    wishes.ird = wishes.ord = depth;
    mpa::Agreement agreement;
    return mpa::make_reply(wishes, request, agreement);
  }
  // Reads the Request, answers with what `change` makes of a good Reply.
  template <class Change>
  void answer(RawPeer& peer, Change change) {
    mpa::StartupFrame reply = reply_to(peer.receive_frame(mpa::FrameKind::kRequest));
    change(reply);
    peer.send(reply);
  }
  void expect_silence_then_close(RawPeer& peer) { EXPECT_EQ(Octets{}, peer.receive_all()); }

  RawPeer listener_;
  sockaddr_storage to_{};
  uint32_t id_ = 0;
};

TEST_F(InitiatorTest, RequestSaysWhatTheApplicationWants) {  // MS-01, ME-15, 5.2
  RawPeer peer = start("hi", 5, 6);
  const mpa::StartupFrame request = peer.receive_frame(mpa::FrameKind::kRequest);
  EXPECT_EQ(2, request.revision);
  ASSERT_TRUE(request.enhanced.has_value());
  EXPECT_TRUE(request.enhanced->peer_to_peer);
  EXPECT_TRUE(request.enhanced->rtr_write);
  EXPECT_TRUE(request.enhanced->rtr_read);
  EXPECT_FALSE(request.enhanced->rtr_send);
  EXPECT_EQ(5, request.enhanced->ird);
  EXPECT_EQ(6, request.enhanced->ord);
  EXPECT_FALSE(request.markers);
  EXPECT_EQ(2, request.private_size);
}

// On loopback TCP's handshake is over when connect() returns, unless the kernel has left the
// packets to its ksoftirqd: then it is the engine that sends the Request.
TEST_F(InitiatorTest, RequestDoesNotWaitForTheEngine) {
  struct Pause final : engine::Task {
    void run() override {
      begun.release();
      end.acquire();
    }
    std::binary_semaphore begun{0}, end{0};
  };
  bool did_not_wait = false;
  for (uint32_t attempt = 1; attempt <= 20 && !did_not_wait; ++attempt) {
    Pause pause;
    id_ = new_resolved(attempt, to_);
    engine_->post(pause);
    pause.begun.acquire();
    EXPECT_EQ(0, connect(id_, conn_param(attempt, "hi")));
    RawPeer peer = listener_.accept();
    pollfd request_here{peer.fd(), POLLIN, 0};
    did_not_wait = poll(&request_here, 1, 500) == 1;
    pause.end.release();
    answer(peer, [](mpa::StartupFrame&) {});
    channel_.expect(EventType::kEstablished);
    peer.receive(1);  // the RTR
    peer.close();
    channel_.expect(EventType::kDisconnected);
  }
  EXPECT_TRUE(did_not_wait);
}

TEST_F(InitiatorTest, ReplyMakesItEstablished) {
  RawPeer peer = start();
  answer(peer, [](mpa::StartupFrame& reply) { set_private_data(reply, Octets{'o', 'k'}); });
  const Event event = channel_.expect(EventType::kEstablished);
  EXPECT_EQ("ok", data_of(event.param));
  EXPECT_EQ(1u, peer.receive(1).size());  // the RTR
  peer.close();
  channel_.expect(EventType::kDisconnected);
}

TEST_F(InitiatorTest, QueuePairHearsTheAckTimeout) {
  RawPeer peer = start();
  const uint8_t timeout = 18;
  ASSERT_EQ(
      0, manager_.set_option(channel_.channel, id_, Manager::Option::kAckTimeout, {&timeout, 1}));
  answer(peer, [](mpa::StartupFrame&) {});
  channel_.expect(EventType::kEstablished);
  engine_->run_sync([&] { EXPECT_EQ(timeout, qps_.ack_timeout); });
}

TEST_F(InitiatorTest, ReplyInSingleOctets) {  // MS-11
  RawPeer peer = start();
  for (uint8_t octet : RawPeer::encoded(reply_to(peer.receive_frame(mpa::FrameKind::kRequest)))) {
    peer.send({octet});
  }
  channel_.expect(EventType::kEstablished);
}

TEST_F(InitiatorTest, OctetsGluedToTheReplyReachTheQueuePair) {  // MS-13
  RawPeer peer = start();
  Octets octets = RawPeer::encoded(reply_to(peer.receive_frame(mpa::FrameKind::kRequest)));
  octets.insert(octets.end(), 600, 0x5a);
  peer.send(octets);
  channel_.expect(EventType::kEstablished);
  engine_->run_sync([this] {
    const Octets& behind = qps_.at(1).octets_behind_reply;
    EXPECT_FALSE(behind.empty());
    for (uint8_t octet : behind) EXPECT_EQ(0x5a, octet);
  });
}

TEST_F(InitiatorTest, EveryWrongKeyOctetIsAConnectError) {  // MS-04
  for (size_t i = 0; i < 16; ++i) {
    RawPeer peer = start();
    Octets octets = RawPeer::encoded(reply_to(peer.receive_frame(mpa::FrameKind::kRequest)));
    octets[i] ^= 0x20;
    peer.send(octets);
    channel_.expect(EventType::kConnectError, -EPROTO);
    peer.receive_all();
    destroy(id_);
  }
}

TEST_F(InitiatorTest, APeerThatDoesNotSpeakMpaIsNamed) {
  core::forget_explained();
  testing::internal::CaptureStderr();
  RawPeer peer = start();
  peer.receive_frame(mpa::FrameKind::kRequest);
  const std::string_view answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
  peer.send(Octets(answer.begin(), answer.end()));
  channel_.expect(EventType::kConnectError, -EPROTO);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("connection to 127.0.0.1:"));
  EXPECT_THAT(said, testing::HasSubstr("does not speak MPA"));
  EXPECT_THAT(said, testing::HasSubstr("a program without RDMA?"));
}

TEST_F(InitiatorTest, MalformedRepliesAreConnectErrors) {  // MS-05, MS-08, MS-16, 5.2
  const std::vector<std::function<void(Octets&)>> damages = {
      [](Octets& o) { o[9] = 'q'; },  // a Request
      [](Octets& o) { o[17] = 0; },   // revision
      [](Octets& o) { o[17] = 3; },
      [](Octets& o) { o[16] &= 0xef; },               // S=0
      [](Octets& o) { o[18] = 0x02, o[19] = 0x01; },  // PD_Length 513
      [](Octets& o) { o[18] = 0, o[19] = 3; },        // no room for the block
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    RawPeer peer = start();
    Octets octets = RawPeer::encoded(reply_to(peer.receive_frame(mpa::FrameKind::kRequest)));
    damages[i](octets);
    peer.send(octets);
    SCOPED_TRACE(i);
    channel_.expect(EventType::kConnectError, -EPROTO);
    peer.receive_all();
    destroy(id_);
  }
}

TEST_F(InitiatorTest, RejectDeliversPrivateDataAndDepths) {  // MS-19, ME-10
  RawPeer peer = start();
  answer(peer, [](mpa::StartupFrame& reply) {
    reply.reject = true;
    reply.enhanced->ird = 7;
    reply.enhanced->ord = 9;
    set_private_data(reply, Octets{'n', 'o'});
  });
  const Event event = channel_.expect(EventType::kRejected, -ECONNREFUSED);
  EXPECT_EQ("no", data_of(event.param));
  EXPECT_EQ(7, event.param.initiator_depth);
  EXPECT_EQ(9, event.param.responder_resources);
  expect_silence_then_close(peer);
}

TEST_F(InitiatorTest, NobodyListensIsRejected) {
  listener_.close();
  id_ = new_resolved(11, to_);
  ASSERT_EQ(0, connect(id_, conn_param(1)));
  channel_.expect(EventType::kRejected, -ECONNREFUSED);
  EXPECT_EQ(0, disconnect(id_));  // as Linux's iw_cm_disconnect()
}

// perftest's server listens a second time while its client connects already. This thread may lose
// its processor for longer than is waited.
TEST_F(InitiatorTest, AListenerThatComesAMomentLaterIsReached) {
  listener_.close();
  bool reached = false;
  for (int attempt = 0; attempt < 20 && !reached; ++attempt) {
    const int late = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    setsockopt(late, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ASSERT_EQ(0, bind(late, reinterpret_cast<const sockaddr*>(&to_), sizeof(sockaddr_in)));
    id_ = new_resolved(11, to_);
    ASSERT_EQ(0, connect(id_, conn_param(1)));  // refused within
    ASSERT_EQ(0, listen(late, 1));
    pollfd arrival{late, POLLIN, 0};
    reached = poll(&arrival, 1, 1000) == 1;
    destroy(id_);
    ::close(late);
  }
  EXPECT_TRUE(reached);
}

// Programs number their connections by the order in which Requests come (perftest's -q). A
// listener that comes between two of them does not turn it round.
TEST_F(InitiatorTest, ThoseBehindOneThatWaitsForAListenerComeAfterIt) {
  constexpr uint8_t kCount = 8;
  listener_.close();
  std::vector<uint32_t> ids;
  for (uint8_t i = 0; i < kCount; ++i) ids.push_back(new_resolved(i + 1u, to_));
  const auto begin = [&](uint8_t i) {
    ASSERT_EQ(0, connect(ids[i], conn_param(i + 1u, {static_cast<char>(i)})));
  };
  HeldEngine held(*engine_);
  begin(0);  // refused within
  begin(1);
  RawPeer late;
  late.listen(to_);
  for (uint8_t i = 2; i < kCount; ++i) begin(i);
  held.release();
  std::vector<RawPeer> peers;
  for (uint8_t i = 0; i < kCount; ++i) {
    peers.push_back(late.accept());
    const mpa::StartupFrame request = peers.back().receive_frame(mpa::FrameKind::kRequest);
    ASSERT_EQ(1, request.private_size);
    EXPECT_EQ(i, request.private_data[0]);
  }
}

TEST_F(InitiatorTest, CloseOnRevision2IsTriedAgainWithRevision1) {  // ME-21
  for (bool reset : {false, true}) {
    RawPeer first = start("data");
    EXPECT_EQ(2, first.receive_frame(mpa::FrameKind::kRequest).revision);
    if (reset) {
      first.reset();
    } else {
      first.close();
    }
    RawPeer second = listener_.accept();
    const mpa::StartupFrame request = second.receive_frame(mpa::FrameKind::kRequest);
    EXPECT_EQ(1, request.revision);
    EXPECT_FALSE(request.enhanced.has_value());
    EXPECT_EQ(4, request.private_size);
    second.reset();  // once only
    channel_.expect(EventType::kRejected, -ECONNRESET);
    destroy(id_);
  }
}

TEST_F(InitiatorTest, AReplyInRevision1IsTriedAgainWithRevision1) {  // RFC 5044 C.2.1
  RawPeer first = start("data");
  mpa::StartupFrame request = first.receive_frame(mpa::FrameKind::kRequest);
  request.revision = 1;
  request.enhanced.reset();
  Octets octets = RawPeer::encoded(reply_to(request));
  // An FPDU behind it is none of ours.
  octets.insert(octets.end(), 20, 0);
  first.send(octets);
  expect_silence_then_close(first);
  RawPeer second = listener_.accept();
  answer(second, [](mpa::StartupFrame& reply) { EXPECT_EQ(1, reply.revision); });
  channel_.expect(EventType::kEstablished);
  engine_->run_sync([this] {
    EXPECT_EQ(1, qps_.at(1).agreed.revision);
    EXPECT_EQ(Octets{}, qps_.at(1).octets_behind_reply);
  });
}

TEST_F(InitiatorTest, AReplyInRevision1IsAnErrorWithoutFallback) {
  settings_.mpa_fallback = false;
  RawPeer peer = start();
  answer(peer, [](mpa::StartupFrame& reply) {
    reply.revision = 1;
    reply.enhanced.reset();
  });
  channel_.expect(EventType::kConnectError, -EPROTO);
  expect_silence_then_close(peer);
}

TEST_F(InitiatorTest, Revision1AfterFallbackConnects) {
  RawPeer first = start();
  first.receive_frame(mpa::FrameKind::kRequest);
  first.close();
  RawPeer second = listener_.accept();
  answer(second, [](mpa::StartupFrame&) {});
  channel_.expect(EventType::kEstablished);
  engine_->run_sync([this] { EXPECT_EQ(1, qps_.at(1).agreed.revision); });
}

TEST_F(InitiatorTest, NoFallbackWhenSwitchedOff) {
  settings_.mpa_fallback = false;
  RawPeer peer = start();
  peer.receive_frame(mpa::FrameKind::kRequest);
  peer.close();
  channel_.expect(EventType::kRejected, -ECONNRESET);
}

TEST_F(InitiatorTest, NoFallbackAfterTheBeginningOfAReply) {
  RawPeer peer = start();
  const Octets octets = RawPeer::encoded(reply_to(peer.receive_frame(mpa::FrameKind::kRequest)));
  peer.send(Octets(octets.begin(), octets.begin() + 10));
  peer.close();
  channel_.expect(EventType::kRejected, -ECONNRESET);
}

TEST_F(InitiatorTest, NobodyListensForTheFallback) {
  RawPeer peer = start();
  peer.receive_frame(mpa::FrameKind::kRequest);
  listener_.close();
  peer.close();
  channel_.expect(EventType::kRejected, -ECONNRESET);
}

TEST_F(InitiatorTest, SilenceIsUnreachable) {
  settings_.reply_timeout_ms = 30;
  RawPeer peer = start();
  peer.receive_frame(mpa::FrameKind::kRequest);
  channel_.expect(EventType::kUnreachable, -ETIMEDOUT);
  expect_silence_then_close(peer);
}

TEST_F(InitiatorTest, DribblingReplyIsUnreachable) {  // MS-07
  settings_.reply_timeout_ms = 50;
  RawPeer peer = start();
  mpa::StartupFrame reply = reply_to(peer.receive_frame(mpa::FrameKind::kRequest));
  reply.private_size = 500;
  const Octets octets = RawPeer::encoded(reply);
  pollfd state{peer.fd(), POLLIN, 0};
  for (size_t sent = 0; sent < octets.size() && poll(&state, 1, 10) == 0;) {
    peer.send({octets[sent++]});
  }
  channel_.expect(EventType::kUnreachable, -ETIMEDOUT);
}

// The Terminate of conformance 1.8: ULPDU 22, no headers attached.
void expect_terminate(RawPeer& peer, uint16_t code, bool crc) {
  const Octets fpdu = peer.receive_all();
  ASSERT_EQ(28u, fpdu.size());
  EXPECT_EQ(0, fpdu[0]);
  EXPECT_EQ(22, fpdu[1]);
  EXPECT_EQ(0x41, fpdu[2]);  // untagged, last, DV 1
  EXPECT_EQ(0x47, fpdu[3]);  // RV 1, Terminate
  EXPECT_EQ(2, fpdu[11]);    // QN
  EXPECT_EQ(1, fpdu[15]);    // MSN
  EXPECT_EQ(code, fpdu[20] << 8 | fpdu[21]);
  EXPECT_EQ(0, fpdu[22]);
  uint32_t sum;
  memcpy(&sum, &fpdu[24], sizeof sum);
  EXPECT_EQ(crc ? core::crc32c(fpdu.data(), 24) : 0, sum);
}

TEST_F(InitiatorTest, TooManyReadsWantedIsATerminate) {  // ME-09
  RawPeer peer = start();
  answer(peer, [](mpa::StartupFrame& reply) { reply.enhanced->ord = 200; });
  channel_.expect(EventType::kConnectError, -EPROTO);
  expect_terminate(peer, 0x2006, false);
}

TEST_F(InitiatorTest, NoCommonRtrIsATerminate) {  // ME-18
  RawPeer peer = start();
  answer(peer, [](mpa::StartupFrame& reply) {
    reply.crc = true;
    reply.enhanced->rtr_send = true;
    reply.enhanced->rtr_write = reply.enhanced->rtr_read = false;
  });
  channel_.expect(EventType::kConnectError, -EPROTO);
  expect_terminate(peer, 0x2007, true);
}

TEST_F(InitiatorTest, TheTerminateHasAMarkerForAPeerThatWantsThem) {  // TE-16
  RawPeer peer = start();
  answer(peer, [](mpa::StartupFrame& reply) {
    reply.crc = reply.markers = true;
    reply.enhanced->ord = 200;
  });
  channel_.expect(EventType::kConnectError, -EPROTO);
  Octets octets = from_hex("00000000 0016 4147 00000000 00000002 00000001 00000000 2006 0000");
  const uint32_t sum = core::crc32c(octets.data(), octets.size());
  for (int shift = 0; shift < 32; shift += 8) octets.push_back(static_cast<uint8_t>(sum >> shift));
  EXPECT_EQ(octets, peer.receive_all());
}

TEST_F(InitiatorTest, MarkersAreAgreedPerDirection) {  // MS-25, MS-26
  settings_.mpa_markers = true;
  RawPeer peer = start();
  const mpa::StartupFrame request = peer.receive_frame(mpa::FrameKind::kRequest);
  EXPECT_TRUE(request.markers);
  peer.send(reply_to(request));
  channel_.expect(EventType::kEstablished);
  engine_->run_sync([this] {
    EXPECT_TRUE(qps_.at(1).agreed.rx_markers);
    EXPECT_FALSE(qps_.at(1).agreed.tx_markers);
  });
}

TEST_F(InitiatorTest, NoQueuePairIsATerminate) {  // ME-22
  RawPeer peer = start();
  engine_->run_sync([this] { qps_.gone = 1; });
  answer(peer, [](mpa::StartupFrame&) {});
  channel_.expect(EventType::kConnectError, -EINVAL);
  expect_terminate(peer, 0x2005, false);
}

TEST_F(InitiatorTest, QueuePairThatWillNotIsAConnectError) {
  RawPeer peer = start();
  engine_->run_sync([this] { qps_.at(1).attached = true; });
  answer(peer, [](mpa::StartupFrame& reply) { reply.crc = true; });
  channel_.expect(EventType::kConnectError, -EINVAL);
  expect_terminate(peer, 0x2005, true);  // ME-22
}

TEST_F(InitiatorTest, ConnectionThatEndsBeforeTheRtrIsAConnectError) {
  qps_.mute = true;
  RawPeer peer = start();
  answer(peer, [](mpa::StartupFrame&) {});
  peer.close();
  channel_.expect(EventType::kConnectError, -ECONNRESET);
}

TEST_F(InitiatorTest, PrivateDataLimits) {  // ME-06
  id_ = new_resolved(11, to_);
  EXPECT_EQ(EINVAL, connect(id_, conn_param(1, std::string(252, 'x'))));
  ASSERT_EQ(0, connect(id_, conn_param(1, std::string(251, 'x'))));
  RawPeer peer = listener_.accept();
  EXPECT_EQ(251, peer.receive_frame(mpa::FrameKind::kRequest).private_size);
}

TEST_F(InitiatorTest, Revision1HasRoomForAll) {
  settings_.mpa_revision = 1;
  RawPeer peer = start(std::string(255, 'x'));
  const mpa::StartupFrame request = peer.receive_frame(mpa::FrameKind::kRequest);
  EXPECT_EQ(1, request.revision);
  EXPECT_EQ(255, request.private_size);
  peer.close();  // no second try
  channel_.expect(EventType::kRejected, -ECONNRESET);
}

TEST_F(InitiatorTest, BoundSourcePortIsUsed) {
  id_ = new_id(11);
  ASSERT_EQ(0, manager_.bind(channel_.channel, id_, ip("127.0.0.1", 0)));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, id_, route));
  const uint16_t port = transport::port_of(route.source);
  EXPECT_NE(0, port);
  ASSERT_EQ(0, manager_.resolve_address(channel_.channel, id_, {}, to_));
  channel_.expect(EventType::kAddrResolved);
  ASSERT_EQ(0, manager_.resolve_route(channel_.channel, id_));
  channel_.expect(EventType::kRouteResolved);
  ASSERT_EQ(0, connect(id_, conn_param(1)));
  RawPeer peer = listener_.accept();
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  ASSERT_EQ(0, getpeername(peer.fd(), reinterpret_cast<sockaddr*>(&from), &size));
  EXPECT_EQ(port, transport::port_of(from));
}

}  // namespace
}  // namespace uiw::cm::test
