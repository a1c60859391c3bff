// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections of which an instrument says what becomes of them.
#include <poll.h>
#include <unistd.h>

#include <atomic>

#include "core/instrumented.h"
#include "uiwarp/uiwarp-verbs.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

// What an instrument wants of a connection.
class ConnectFate : public ConnectionTest {
 protected:
  explicit ConnectFate(device::CmRules rules = device::CmRules::kIwarp) : ConnectionTest(rules) {}
  void SetUp() override {
    settings_.connect_timeout_ms = 50;
    ConnectionTest::SetUp();
    to_ = listener_.listen();
    table_.cm_connecting = [](uint16_t port, uint32_t qp_num) {
      EXPECT_EQ(port, expected_port);
      EXPECT_EQ(qp_num, 1u);
      return fate;
    };
    core::instrumented = &table_;
  }
  void TearDown() override {
    core::instrumented = nullptr;
    ConnectionTest::TearDown();
  }
  void begin(uiwarp_connect_fate how) {
    fate = how;
    expected_port = transport::port_of(to_);
    ASSERT_EQ(0, connect(new_resolved(11, to_), conn_param(1)));
  }
  static uint16_t expected_port;
  static uiwarp_connect_fate fate;
  uiwarp_verbs table_{};
  RawPeer listener_;
  sockaddr_storage to_{};
};
uint16_t ConnectFate::expected_port = 0;
uiwarp_connect_fate ConnectFate::fate = UIWARP_CONNECT_GOES_ON;

TEST_F(ConnectFate, TheProgramGetsTheEventOfSuchAFailureAndThePeerHearsNothing) {
  begin(UIWARP_CONNECT_REJECTED);
  channel_.expect(EventType::kRejected, -ECONNREFUSED);
  begin(UIWARP_CONNECT_UNANSWERED);
  channel_.expect(EventType::kUnreachable, -ETIMEDOUT);
  begin(UIWARP_CONNECT_UNREACHABLE);
  channel_.expect(EventType::kConnectError, -EHOSTUNREACH);
  pollfd anybody{listener_.fd(), POLLIN, 0};
  EXPECT_EQ(0, poll(&anybody, 1, 0));
  begin(UIWARP_CONNECT_GOES_ON);
  RawPeer peer = listener_.accept();
  EXPECT_EQ(2, peer.receive_frame(mpa::FrameKind::kRequest).revision);
}

class ConnectFateOfInfiniband : public ConnectFate {
 protected:
  ConnectFateOfInfiniband() : ConnectFate(device::CmRules::kInfiniband) {}
};

TEST_F(ConnectFateOfInfiniband, NoWayToTheHostIsUnreachable) {  // as ib_cm's REQ without an answer
  begin(UIWARP_CONNECT_UNREACHABLE);
  channel_.expect(EventType::kUnreachable, -EHOSTUNREACH);
}

// What an instrument wants of a connection that is requested.
class AcceptFate : public ConnectionTest {
 protected:
  void SetUp() override {
    settings_.reply_timeout_ms = 10;
    ConnectionTest::SetUp();
    table_.cm_accepting = [](const sockaddr_storage*, const sockaddr_storage*) {
      ++asked;
      return fate.load();
    };
    table_.connected = [](uint32_t, const sockaddr_storage*, const sockaddr_storage*) {};
    core::instrumented = &table_;
  }
  void TearDown() override {
    core::instrumented = nullptr;
    ConnectionTest::TearDown();
  }
  // A peer that wants that, of which the instrument was asked, and wants `how`.
  RawPeer requested(uiwarp_connect_fate how) {
    fate = how;
    const int before = asked;
    RawPeer peer = dial();
    peer.send(request_frame());
    const core::Nanoseconds limit = core::now() + 60 * core::kSecond;
    while (asked == before && core::now() < limit) usleep(1000);
    EXPECT_EQ(before + 1, asked);
    return peer;
  }
  static std::atomic<int> asked;
  static std::atomic<uiwarp_connect_fate> fate;
  uiwarp_verbs table_{};
};
std::atomic<int> AcceptFate::asked = 0;
std::atomic<uiwarp_connect_fate> AcceptFate::fate = UIWARP_CONNECT_GOES_ON;

TEST_F(AcceptFate, TheProgramDoesNotGetWhatIsRejectedInItsNameOrNotAnswered) {
  new_listener(33);
  RawPeer rejected = requested(UIWARP_CONNECT_REJECTED);
  EXPECT_TRUE(rejected.receive_frame(mpa::FrameKind::kReply).reject);
  // Its peer hears nothing, and is closed in the end.
  RawPeer ignored = requested(UIWARP_CONNECT_UNANSWERED);
  EXPECT_EQ(Octets{}, ignored.receive_all());
  { RawPeer leaves = requested(UIWARP_CONNECT_UNANSWERED); }
  fate = UIWARP_CONNECT_GOES_ON;
  RawPeer good = dial();
  destroy(request(good, request_frame()).id);
  EXPECT_EQ(0, channel_.queued());
}

}  // namespace
}  // namespace uiw::cm::test
