// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs with unreliable service that are connected by number: as reliable ones, but to each
// other only, and without hearing of a peer that does not come.
#include <gmock/gmock.h>

#include "unit/rendezvous/party.h"

namespace uiw::rendezvous {
namespace {

constexpr auto kUnreliable = core::Service::kUnreliable;

class UnreliableSearches : public OnEngine {};

TEST_F(UnreliableSearches, FindEachOther) {
  Party a(*engine, kUnreliable), b(*engine, kUnreliable);
  Buffer from(a.host.memory, pattern(5000)), to(b.host.memory, 5000);
  ASSERT_EQ(a.search_peer(b.name), 0);
  ASSERT_EQ(a.ready(), 0);
  // What is posted before the peer is there waits for it.
  for (uint64_t id = 0; id < 3; ++id)
    ASSERT_EQ(a.host.post(SendWr(IBV_WR_SEND, {from.sge()}, id)), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(b.host.receive(RecvWr({to.sge()})), 0);
  ASSERT_EQ(b.search_peer(a.name), 0);
  ASSERT_TRUE(b.wait_for_received(3));
  ASSERT_TRUE(a.wait_for_sent(3));
  for (const ibv_wc& wc : b.host.received()) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(to.content(), from.content());
}

// Whichever of the two it is that connects.
TEST_F(UnreliableSearches, AndReliableOnesDoNotConnect) {
  for (const bool reliable_is_smaller : {true, false}) {
    std::optional<Party> a(std::in_place, *engine), b(std::in_place, *engine, kUnreliable);
    while ((a->name < b->name) != reliable_is_smaller) {
      a.emplace(*engine);
      b.emplace(*engine, kUnreliable);
    }
    Party &reliable = *a, &unreliable = *b;
    Buffer from_reliable(reliable.host.memory, pattern(10)),
        from_unreliable(unreliable.host.memory, pattern(10));
    testing::internal::CaptureStderr();
    ASSERT_EQ(reliable.search_peer(unreliable.name), 0);
    ASSERT_EQ(unreliable.search_peer(reliable.name), 0);
    for (Party* party : {&reliable, &unreliable})
      ASSERT_EQ(party->ready(100 * core::kMillisecond), 0);
    ASSERT_EQ(reliable.host.post(SendWr(IBV_WR_SEND, {from_reliable.sge()})), 0);
    ASSERT_EQ(unreliable.host.post(SendWr(IBV_WR_SEND, {from_unreliable.sge()})), 0);
    ASSERT_TRUE(reliable.wait_for_sent(1) && unreliable.wait_for_sent(1));
    EXPECT_EQ(reliable.host.sent()[0].status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(unreliable.host.sent()[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(unreliable.host.state(), IBV_QPS_RTS);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::HasSubstr(reliable_is_smaller ? "that is UC, and this one is RC"
                                                       : "that is RC, and this one is UC"));
  }
}

TEST_F(UnreliableSearches, DropWhatIsPostedUntilALatePeerComes) {
  for (const bool we_are_smaller : {true, false}) {
    Party first(*engine, kUnreliable), second(*engine, kUnreliable);
    Party& ours = (first.name < second.name) == we_are_smaller ? first : second;
    Party& late = &ours == &first ? second : first;
    Buffer from(ours.host.memory, pattern(100)), to(late.host.memory, 100);
    ASSERT_EQ(ours.search_peer(late.name), 0);
    ASSERT_EQ(ours.ready(20 * core::kMillisecond), 0);
    ASSERT_EQ(ours.host.receive(RecvWr({from.sge()}, 7)), 0);
    uint64_t id = 0;
    const auto post = [&] {
      EXPECT_EQ(ours.host.post(SendWr(IBV_WR_SEND, {from.sge()}, id++)), 0);
      return ours.wait_for_sent(id);
    };
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(post());  // more than there is room for
    EXPECT_EQ(ours.host.state(), IBV_QPS_RTS);
    ASSERT_EQ(late.host.receive(RecvWr({to.sge()})), 0);
    ASSERT_EQ(late.search_peer(ours.name), 0);
    ASSERT_TRUE(wait_until([&] { return post() && !late.host.received().empty(); }));
    EXPECT_EQ(late.host.received()[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(to.content(), from.content());
    for (const ibv_wc& wc : ours.host.sent()) ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_TRUE(ours.host.received().empty());
    EXPECT_TRUE(ours.host.events().empty());
  }
}

TEST_F(UnreliableSearches, RdmaCmDoesNotConnectThem) {
  Party a(*engine, kUnreliable);
  testing::internal::CaptureStderr();
  EXPECT_EQ(a.host.qp->claim(), EINVAL);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("RC queue pairs only"));
  const SocketEnds sockets = connect_sockets();
  EXPECT_EQ(a.host.attach(sockets.ours), EINVAL);
  close(sockets.theirs);
}

}  // namespace
}  // namespace uiw::rendezvous
