// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ids for datagrams: service id resolution, and what becomes of it where the other end is not what
// it should be.
#include "cm/resolution.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

constexpr int kNotSupported = 1, kRejected = 2;  // status of a SIDR_REP
constexpr int kNobodyListens = 8;                // reason of a REJ message

// No queue pair that there is: the number is what the program gives.
constexpr uint32_t kOfNobody = 0xabcdef;

class DatagramTest : public ConnectionTest {
 protected:
  DatagramTest() : ConnectionTest(device::CmRules::kInfiniband) { space_ = PortSpace::kUdp; }

  // Id `active_` (uid 11) asks a listener (uid 33), and `passive_` is to answer.
  Event make_request(const std::string& data = "") {
    new_listener(33);
    active_ = new_resolved(11, listen_address_);
    EXPECT_EQ(0, connect(active_, conn_param(0, data)));
    const Event request = channel_.expect(EventType::kConnectRequest);
    passive_ = request.id;
    return request;
  }
  int reject(uint32_t id, const std::string& data = "") {
    return manager_.reject(channel_.channel, id,
                           {reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  }
  // The active end; the passive one, by hand, has its Request.
  RawPeer dialled() {
    RawPeer listener;
    active_ = new_resolved(11, listener.listen());
    EXPECT_EQ(0, connect(active_, conn_param(0, "hello")));
    RawPeer peer = listener.accept();
    asked_ = peer.receive_frame(mpa::FrameKind::kRequest);
    return peer;
  }
  void expect_nothing_more() {
    settle();
    EXPECT_EQ(0, channel_.queued());
  }

  uint32_t active_ = 0, passive_ = 0;
  mpa::StartupFrame asked_;
};

TEST_F(DatagramTest, TheAnswerSaysWhereToSendTo) {
  const Event request = make_request("who are you");
  EXPECT_EQ(33u, request.uid);
  EXPECT_EQ(Service::kDatagrams, request.route.service);
  EXPECT_EQ("who are you", data_of(request.param));
  EXPECT_EQ(0u, request.param.qp_num);
  ASSERT_EQ(0, accept(passive_, 22, conn_param(kOfNobody, "me")));
  const Event answer = channel_.expect(EventType::kEstablished);
  EXPECT_EQ(11u, answer.uid);
  EXPECT_EQ("me", data_of(answer.param));
  EXPECT_EQ(kOfNobody, answer.param.qp_num);
  EXPECT_EQ(0x01234567u, answer.param.qkey);
  EXPECT_TRUE(transport::same_host(listen_address_, answer.route.destination));
  EXPECT_NE(nullptr, answer.route.device);
  expect_nothing_more();
  // Neither end has anything to disconnect, and may say so.
  EXPECT_EQ(0, disconnect(active_));
  EXPECT_EQ(0, disconnect(passive_));
  EXPECT_EQ(EINVAL, accept(passive_, 22, conn_param(1)));
  EXPECT_EQ(EINVAL, connect(active_, conn_param(1)));
  EXPECT_EQ(3u, destroy(active_));
  EXPECT_EQ(0u, destroy(passive_));
  settle();
  EXPECT_EQ(1u, manager_.endpoints());  // the listener's
}

TEST_F(DatagramTest, NoQueuePairIsTouched) {
  make_request();
  ASSERT_EQ(0, accept(passive_, 22, conn_param(7)));
  channel_.expect(EventType::kEstablished);
  EXPECT_EQ(0, qps_.claim(7));
  bool attached = true;
  engine_->run_sync([&] { attached = qps_.at(7).attached; });
  EXPECT_FALSE(attached);
}

TEST_F(DatagramTest, RoomForPrivateData) {
  const std::string most(180, 'x'), least_too_much(181, 'x');
  new_listener(33);
  active_ = new_resolved(11, listen_address_);
  EXPECT_EQ(EINVAL, connect(active_, conn_param(0, least_too_much)));
  ASSERT_EQ(0, connect(active_, conn_param(0, most)));
  const Event request = channel_.expect(EventType::kConnectRequest);
  EXPECT_EQ(most, data_of(request.param));
  EXPECT_EQ(EINVAL, reject(request.id, std::string(137, 'y')));
  ASSERT_EQ(0, accept(request.id, 22, conn_param(0, std::string(136, 'y'))));
  EXPECT_EQ(std::string(136, 'y'), data_of(channel_.expect(EventType::kEstablished).param));
}

TEST_F(DatagramTest, ARequestWhoseAcceptIsRefusedIsRejected) {
  make_request();
  EXPECT_EQ(EINVAL, accept(passive_, 22, conn_param(0, std::string(137, 'y'))));
  EXPECT_EQ(11u, channel_.expect(EventType::kUnreachable, kRejected).uid);
  expect_nothing_more();
}

TEST_F(DatagramTest, ARejectedRequestIsUnreachable) {
  make_request();
  ASSERT_EQ(0, reject(passive_, "go away"));
  const Event event = channel_.expect(EventType::kUnreachable, kRejected);
  EXPECT_EQ(11u, event.uid);
  EXPECT_EQ("go away", data_of(event.param));
  expect_nothing_more();
}

TEST_F(DatagramTest, ADestroyedRequestIsARejectedOne) {
  make_request();
  destroy(passive_);
  channel_.expect(EventType::kUnreachable, kRejected);
}

TEST_F(DatagramTest, NobodyListens) {
  RawPeer listener;
  const sockaddr_storage address = listener.listen();
  listener.close();
  ASSERT_EQ(0, connect(new_resolved(11, address), conn_param(0)));
  channel_.expect(EventType::kUnreachable, kNotSupported);
}

TEST_F(DatagramTest, APeerThatDiesHasRejected) {
  RawPeer peer = dialled();
  peer.close();
  channel_.expect(EventType::kUnreachable, kRejected);
  expect_nothing_more();  // and it is not asked again by another revision
}

TEST_F(DatagramTest, ASilentPeerIsUnreachable) {
  settings_.reply_timeout_ms = 1;
  const RawPeer peer = dialled();
  channel_.expect(EventType::kUnreachable, -ETIMEDOUT);
}

TEST_F(DatagramTest, TheRequestEndsWithTheId) {
  RawPeer peer = dialled();
  EXPECT_EQ(2u, destroy(active_));
  EXPECT_EQ(Octets{}, peer.receive_all());
}

TEST_F(DatagramTest, WhoAsksMayGoBeforeTheAnswer) {
  make_request();
  destroy(active_);
  settle();
  EXPECT_EQ(0, accept(passive_, 22, conn_param(1)));
  expect_nothing_more();
}

TEST_F(DatagramTest, AnAnswerThatWasGivenIsSentWhateverBecomesOfTheId) {
  make_request();
  ASSERT_EQ(0, accept(passive_, 22, conn_param(5)));
  destroy(passive_);
  EXPECT_EQ(5u, channel_.expect(EventType::kEstablished).param.qp_num);
}

TEST_F(DatagramTest, BothEndsCloseAfterTheAnswer) {
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, make_resolution_request({}));
  ASSERT_EQ(0, accept(event.id, 22, conn_param(5)));
  ResolutionAnswer answer;
  EXPECT_TRUE(parse_resolution_answer(peer.receive_frame(mpa::FrameKind::kReply), answer));
  EXPECT_EQ(5u, answer.qp_num);
  EXPECT_EQ(Octets{}, peer.receive_all());

  RawPeer responder = dialled();
  responder.send(make_resolution_answer({}, {}));
  channel_.expect(EventType::kEstablished);
  EXPECT_EQ(Octets{}, responder.receive_all());
}

TEST_F(DatagramTest, ARequestWithMorePrivateDataThanThereIsRoomForIsRefusedWhole) {
  new_listener(33);
  RawPeer peer = dial();
  const Octets much(181, 'x');
  peer.send(make_resolution_request({much.data(), much.size()}));
  EXPECT_TRUE(peer.receive_frame(mpa::FrameKind::kReply).reject);
  settle();
  EXPECT_EQ(0, channel_.queued());
}

// Who does not know of resolutions, be it siw, takes the Request for an ordinary one.
TEST_F(DatagramTest, APeerThatOffersAConnectionIsLeft) {
  RawPeer peer = dialled();
  mpa::StartupFrame reply;
  reply.kind = mpa::FrameKind::kReply;
  reply.revision = 1;
  peer.send(reply);
  channel_.expect(EventType::kUnreachable, kNotSupported);
  EXPECT_EQ(Octets{}, peer.receive_all());
}

TEST_F(DatagramTest, ARejectWithoutAnAnswerMeansThatThereAreNoDatagrams) {
  RawPeer peer = dialled();
  mpa::StartupFrame reply = mpa::make_reject({}, asked_);
  set_private_data(reply, Octets{1, 2, 3});
  peer.send(reply);
  EXPECT_EQ("", data_of(channel_.expect(EventType::kUnreachable, kNotSupported).param));
}

TEST_F(DatagramTest, WhatIsNoFrameIsToldAsAnError) {
  RawPeer peer = dialled();
  peer.send(Octets(20, 0x5a));
  channel_.expect(EventType::kUnreachable, -EPROTO);
}

TEST_F(DatagramTest, AListenerForConnectionsHasNoDatagrams) {
  space_ = PortSpace::kTcp;
  new_listener(33);
  space_ = PortSpace::kUdp;
  ASSERT_EQ(0, connect(new_resolved(11, listen_address_), conn_param(0, "hello")));
  EXPECT_EQ("", data_of(channel_.expect(EventType::kUnreachable, kNotSupported).param));
  expect_nothing_more();  // the listener's program hears nothing of it
}

TEST_F(DatagramTest, AListenerForDatagramsHasNoConnections) {
  new_listener(33);
  space_ = PortSpace::kTcp;
  ASSERT_EQ(0, connect(new_resolved(11, listen_address_), conn_param(1, "hello")));
  EXPECT_EQ("", data_of(channel_.expect(EventType::kRejected, kNobodyListens).param));
  expect_nothing_more();
}

// An initiator that knows nothing of resolutions sees a Reply in the form of its Request.
TEST_F(DatagramTest, AnOrdinaryRequestIsRejectedInItsOwnForm) {
  new_listener(33);
  for (uint8_t revision : {1, 2}) {
    RawPeer peer = dial();
    peer.send(request_frame(revision));
    const mpa::StartupFrame reply = peer.receive_frame(mpa::FrameKind::kReply);
    EXPECT_TRUE(reply.reject);
    EXPECT_EQ(revision, reply.revision);
    EXPECT_EQ(revision == 2, reply.enhanced.has_value());
    EXPECT_EQ(Octets{}, peer.receive_all());
  }
}

TEST_F(DatagramTest, APortThatTheProgramNamesIsHeldFromListenOn) {
  new_listener(33);
  const uint32_t one = new_id(1), two = new_id(2), any = new_id(3);
  EXPECT_EQ(0, manager_.bind(channel_.channel, one, listen_address_));
  EXPECT_EQ(EADDRINUSE, manager_.listen(channel_.channel, one, 0));
  sockaddr_storage free = listen_address_;
  {
    RawPeer listener;
    free = listener.listen();
  }
  EXPECT_EQ(0, manager_.bind(channel_.channel, two, free));
  EXPECT_EQ(0, manager_.listen(channel_.channel, two, 0));
  EXPECT_EQ(0, manager_.bind(channel_.channel, any, ip("127.0.0.1", 0)));
  Route route;
  EXPECT_EQ(0, manager_.query(channel_.channel, any, route));
  EXPECT_NE(0, transport::port_of(route.source));
  EXPECT_NE(nullptr, route.device);
}

TEST_F(DatagramTest, AnIdOfTheInfinibandPortSpaceIsForWhatItWasMadeFor) {
  uint32_t listener, id;
  ASSERT_EQ(
      0, manager_.create_id(channel_.channel, 33, PortSpace::kIb, Service::kDatagrams, listener));
  ASSERT_EQ(0, manager_.bind(channel_.channel, listener, ip("127.0.0.1", 0)));
  ASSERT_EQ(0, manager_.listen(channel_.channel, listener, 0));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, listener, route));
  ASSERT_EQ(0, connect(new_resolved(11, route.source), conn_param(0)));
  EXPECT_EQ(33u, channel_.expect(EventType::kConnectRequest).uid);
  ASSERT_EQ(0, manager_.create_id(channel_.channel, 1, PortSpace::kIb, Service::kNone, id));
  EXPECT_EQ(EOPNOTSUPP, manager_.listen(channel_.channel, id, 0));
}

TEST_F(DatagramTest, ThePortSpaceOfIpoibIsAsUdps) {
  space_ = PortSpace::kIpoib;
  make_request();
  ASSERT_EQ(0, accept(passive_, 22, conn_param(5)));
  EXPECT_EQ(0x01234567u, channel_.expect(EventType::kEstablished).param.qkey);
}

// As a UDP socket that a program has already: rsockets bind to its port, and never listen.
TEST_F(DatagramTest, AnActiveEndCanHaveAPortOfItsOwn) {
  new_listener(33);
  sockaddr_storage own;
  {
    RawPeer listener;
    own = listener.listen();
  }
  active_ = new_id(11);
  ASSERT_EQ(0, manager_.resolve_address(channel_.channel, active_, own, listen_address_));
  channel_.expect(EventType::kAddrResolved);
  ASSERT_EQ(0, manager_.resolve_route(channel_.channel, active_));
  channel_.expect(EventType::kRouteResolved);
  ASSERT_EQ(0, connect(active_, conn_param(0)));
  Route route;
  ASSERT_EQ(
      0, manager_.query(channel_.channel, channel_.expect(EventType::kConnectRequest).id, route));
  EXPECT_EQ(transport::port_of(own), transport::port_of(route.destination));
}

class IwarpDatagramTest : public ConnectionTest {};

TEST_F(IwarpDatagramTest, AListenerOfTheIwarpFaceRefusesResolutions) {
  new_listener(33);
  RawPeer peer = dial();
  peer.send(make_resolution_request({}));
  ResolutionAnswer answer;
  EXPECT_TRUE(parse_resolution_answer(peer.receive_frame(mpa::FrameKind::kReply), answer));
  EXPECT_EQ(ResolutionStatus::kNotSupported, answer.status);
  settle();
  EXPECT_EQ(0, channel_.queued());
}

}  // namespace
}  // namespace uiw::cm::test
