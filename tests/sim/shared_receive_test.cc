// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One receive queue for several connections.
#include "sim/media.h"

namespace uiw::test {
namespace {

class SharedReceive : public Behaviour {
 protected:
  SharedReceive()
      : srq(queue::ReceiveQueue::create(256, queue::kMaxSge, queue::ReceiveQueue::Takers::kMany)),
        to(world->second_memory, 256 * 64) {}
  ~SharedReceive() override {
    for (auto& [from, at] : links) at->destroy();  // before the queue they refer to
  }

  void link(size_t count) {
    for (size_t i = 0; i < count; ++i) links.push_back(world->connect({}, {.srq = srq.get()}));
  }
  void receive(uint64_t id) {
    RecvWr wr({to.sge(id * 64, 64)}, id);
    ASSERT_EQ(test::post(*srq, wr.get()), 0);
  }
  size_t received() {
    size_t sum = 0;
    for (auto& [from, at] : links) sum += at->received_count();
    return sum;
  }
  std::unique_ptr<queue::ReceiveQueue> srq;
  Buffer to;
  std::vector<std::pair<End*, End*>> links;
};

TEST_P(SharedReceive, ServesAllAndTellsOnceThatItRunsLow) {
  link(3);
  for (uint64_t id = 0; id < 60; ++id) receive(id);
  ASSERT_EQ(srq->arm_limit(10), 0);
  std::vector<std::unique_ptr<Buffer>> octets;
  for (uint32_t i = 0; i < 3; ++i)
    octets.push_back(std::make_unique<Buffer>(world->first_memory, pattern(64, i)));
  for (uint64_t round = 0; round < 20; ++round)
    for (size_t i = 0; i < 3; ++i)
      ASSERT_EQ(links[i].first->post(SendWr(IBV_WR_SEND, {octets[i]->sge()}, round)), 0);
  ASSERT_REACHED(received() == 60);
  std::vector<bool> used(60, false);
  size_t limits = 0;
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<ibv_wc> got = links[i].second->received();
    EXPECT_EQ(got.size(), 20u);
    for (const ibv_wc& wc : got) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.qp_num, links[i].second->qp_num);
      EXPECT_FALSE(used[wc.wr_id]);
      used[wc.wr_id] = true;
      EXPECT_TRUE(std::equal(octets[i]->data(), octets[i]->data() + 64, to.data() + wc.wr_id * 64));
    }
    for (const Notice& n : links[i].second->notices()) limits += n.kind == Notice::kSrqLimit;
  }
  EXPECT_EQ(limits, 1u);
}

TEST_P(SharedReceive, AllWhoWaitGetTheirs) {
  link(3);
  for (auto& [from, at] : links) {
    for (uint64_t i = 0; i < 2; ++i) ASSERT_EQ(from->post(SendWr(IBV_WR_SEND, {}, i)), 0);
  }
  world->settle();
  EXPECT_EQ(received(), 0u);
  for (uint64_t id = 0; id < 6; ++id) {
    receive(id);
    ASSERT_REACHED(received() == id + 1);
  }
  for (auto& [from, at] : links) EXPECT_EQ(at->received_count(), 2u);
}

TEST_P(SharedReceive, OutlivesAConnectionAndIsNotFlushed) {
  link(2);
  for (uint64_t id = 0; id < 5; ++id) receive(id);
  Buffer octets(world->first_memory, pattern(64));
  // A mistake on the first connection, in the middle of a message as far as its size allows.
  ASSERT_EQ(links[0].first->post(SendWr(IBV_WR_RDMA_WRITE, {octets.sge()}, 0).to(1, 2)), 0);
  ASSERT_REACHED(links[0].second->ended() && links[0].first->ended());
  EXPECT_EQ(links[0].second->received_count(), 0u);
  const auto events = links[0].second->async_events();
  EXPECT_EQ(events,
            (std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_LAST_WQE_REACHED}));
  links[0].second->destroy();
  EXPECT_EQ(srq->count(), 5u);
  for (uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(links[1].first->post(SendWr(IBV_WR_SEND, {octets.sge()}, i)), 0);
  ASSERT_REACHED(links[1].second->received_count() == 5);
}

TEST_P(SharedReceive, ADestroyedWaiterIsForgotten) {
  link(2);
  for (auto& [from, at] : links) ASSERT_EQ(from->post(SendWr(IBV_WR_SEND, {}, 0)), 0);
  world->settle();
  links[0].second->destroy();
  receive(0);
  ASSERT_REACHED(links[1].second->received_count() == 1);
  ASSERT_REACHED(links[0].first->ended());
}

}  // namespace

UIWARP_EVERYWHERE(SharedReceive, 8);

}  // namespace uiw::test
