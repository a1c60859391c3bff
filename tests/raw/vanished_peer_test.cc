// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Peers whose host goes without a word, and peers that are only slow. ctest sets how long a silent
// one is waited for.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/settings.h"
#include "support/host.h"
#include "support/vanish.h"

namespace uiw::test {
namespace {

// One FPDU each; far more of them than two sockets hold.
constexpr size_t kMessage = 60000, kCount = 400;

class VanishedPeer : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(core::settings().peer_timeout_ms, 1000u) << "run by ctest, which sets it";
  }
  core::Nanoseconds limit() const { return core::settings().peer_timeout_ms * core::kMillisecond; }
  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
};

struct Pair {
  explicit Pair(engine::Engine& engine, bool by_number = false)
      : host(engine, {.initiator = true, .crc = false, .depth = kCount}),
        from(host.memory, pattern(kMessage)) {
    if (by_number) {
      EXPECT_EQ(host.qp->expect_peer(), 0);
      EXPECT_EQ(host.modify(IBV_QPS_RTS), 0);
    }
    EXPECT_EQ(host.attach(sockets.ours), 0);
    EXPECT_EQ(host.receive(RecvWr({}, 77)), 0);
  }
  void post_write(uint64_t id) {
    EXPECT_EQ(host.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, id).to(0x1000, 0x55)), 0);
  }
  void post_read(uint64_t id) {
    EXPECT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {from.sge()}, id).to(0x1000, 0x55)), 0);
  }
  void fill_the_socket() {
    for (uint64_t i = 0; i < kCount; ++i) post_write(i);
    EXPECT_TRUE(wait_until_nothing_moves(peer.fd()));
  }
  // After some that went out the first one that did not says why, and the rest is flushed.
  void expect_retries_exceeded(size_t posted) {
    ASSERT_TRUE(wait_until([&] { return host.sent().size() == posted; }));
    const std::vector<ibv_wc> done = host.sent();
    size_t i = 0;
    while (i < done.size() && done[i].status == IBV_WC_SUCCESS) ++i;
    ASSERT_LT(i, done.size());
    EXPECT_EQ(done[i].status, IBV_WC_RETRY_EXC_ERR);
    for (++i; i < done.size(); ++i) ASSERT_EQ(done[i].status, IBV_WC_WR_FLUSH_ERR) << i;
  }
  void expect_broken() {
    ASSERT_TRUE(host.wait_for_end());
    EXPECT_EQ(host.end_error(), ETIMEDOUT);
    EXPECT_EQ(host.state(), IBV_QPS_ERR);
    EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
    ASSERT_EQ(host.received().size(), 1u);
    EXPECT_EQ(host.received()[0].status, IBV_WC_WR_FLUSH_ERR);
  }

  const SocketEnds sockets = connect_sockets();
  RawPeer peer{sockets.theirs};
  Host host;
  Buffer from;
};

// All at once, as each takes seconds.
TEST_F(VanishedPeer, IsNoticedInEachWay) {
  Pair sends(*engine), reads(*engine), blocked(*engine), idle(*engine);
  blocked.fill_the_socket();
  reads.post_read(1);
  reads.post_read(2);
  EXPECT_EQ(reads.peer.receive(2 * 52).size(), 2u * 52);
  const core::Nanoseconds start = core::now();
  for (Pair* x : {&sends, &reads, &blocked, &idle}) vanish(x->peer.fd());
  sends.post_write(1);
  {
    SCOPED_TRACE("octets that it does not acknowledge");
    sends.expect_broken();
    EXPECT_GE(core::now() - start, limit());
    ASSERT_EQ(sends.host.sent().size(), 1u);
    EXPECT_EQ(sends.host.sent()[0].status, IBV_WC_SUCCESS) << "TCP has taken it";
  }
  {
    SCOPED_TRACE("a window that it has closed");
    blocked.expect_retries_exceeded(kCount);
    blocked.expect_broken();
  }
  {
    SCOPED_TRACE("Reads that it has acknowledged and does not answer");
    reads.expect_retries_exceeded(2);
    reads.expect_broken();
  }
  {
    SCOPED_TRACE("nothing");
    idle.expect_broken();
  }
}

TEST_F(VanishedPeer, IsNoticedWhileOthersReceive) {
  Pair x(*engine);
  std::atomic<bool> over{false};
  // Whoever polls in vain is lent the queue pair after a few arrivals.
  std::thread poller([&] {
    ibv_wc wc;
    while (!over) x.host.recv_cq->poll(1, &wc);
  });
  for (int i = 0; i < 100; ++i) {
    x.peer.send(fpdu(tagged(0, 0, 0, {}), false));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  vanish(x.peer.fd());
  x.post_write(1);
  EXPECT_TRUE(x.host.wait_for_end());
  over = true;
  poller.join();
}

// As in InfiniBand the oldest request says it, and no event; and where nothing is to be answered
// nobody is told before something is to be sent.
TEST_F(VanishedPeer, OfAQueuePairConnectedByNumber) {
  Pair sends(*engine, true), reads(*engine, true), blocked(*engine, true), idle(*engine, true);
  for (Pair* x : {&sends, &reads, &blocked, &idle}) x->host.qp->set_ack_timeout(limit(), 14);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(sends.host.qp->query(attr, IBV_QP_TIMEOUT, init), 0);
  EXPECT_EQ(attr.timeout, 14);
  blocked.fill_the_socket();
  reads.post_read(1);
  EXPECT_EQ(reads.peer.receive(52).size(), 52u);
  for (Pair* x : {&sends, &reads, &blocked, &idle}) vanish(x->peer.fd());
  sends.post_write(1);
  blocked.expect_retries_exceeded(kCount);
  reads.expect_retries_exceeded(1);
  ASSERT_TRUE(idle.host.wait_for_end());
  EXPECT_EQ(idle.host.state(), IBV_QPS_RTS);
  EXPECT_TRUE(idle.host.received().empty());
  idle.post_write(2);
  idle.post_write(3);
  idle.expect_retries_exceeded(2);
  for (Pair* x : {&sends, &reads, &blocked, &idle}) {
    ASSERT_TRUE(wait_until([&] { return x->host.received().size() == 1; }));
    EXPECT_EQ(x->host.received()[0].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(x->host.state(), IBV_QPS_ERR);
    EXPECT_TRUE(x->host.events().empty());
  }
  ASSERT_EQ(sends.host.sent().size(), 1u);
  EXPECT_EQ(sends.host.sent()[0].status, IBV_WC_SUCCESS) << "TCP has taken it";
}

// All at once, since it takes seconds to see that nothing happens.
TEST_F(VanishedPeer, IsNotOneThatIsSlowOrIdle) {
  Pair stopped(*engine), idle(*engine), forgiven(*engine, true);
  // A time-out of 0 is for ever.
  forgiven.host.qp->set_ack_timeout(0, 0);
  vanish(forgiven.peer.fd());
  forgiven.post_write(1);
  // Its kernel answers every probe of the window that it has closed. TCP_USER_TIMEOUT would end it.
  stopped.fill_the_socket();
  std::this_thread::sleep_for(std::chrono::nanoseconds(5 * limit()));
  for (Pair* x : {&stopped, &idle, &forgiven}) EXPECT_FALSE(x->host.ended());
  size_t octets = 0;
  while (octets < kCount * kMessage) octets += stopped.peer.receive(kMessage).size();
  ASSERT_TRUE(wait_until([&] { return stopped.host.sent().size() == kCount; }));
  for (const ibv_wc& wc : stopped.host.sent()) ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  idle.post_write(1);
  EXPECT_EQ(idle.peer.receive(kMessage).size(), kMessage);
}

}  // namespace
}  // namespace uiw::test
