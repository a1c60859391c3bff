// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Processes that fork: with connections open, and to open their own.

#include <unistd.h>

#include <atomic>
#include <thread>

#include "connected.h"
#include "support/in_child.h"

namespace uiw::provider_test {
namespace {

// Runs `body` in a fork; what it found wrong is printed, and fails the test.
template <class Body>
void in_child(Body&& body) {
  test::in_child([&] {
    body();
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
}

// A parent that has the device open, and children that connect. Comes first, because librdmacm
// keeps the device open for itself from its first use on: what a parent used it for, its children
// cannot. What programs that fork call before anything else, because of devices that pin pages.
struct Preparation : ::testing::Environment {
  void SetUp() override { EXPECT_EQ(ibv_fork_init(), 0); }
};
const ::testing::Environment* const preparation =
    ::testing::AddGlobalTestEnvironment(new Preparation);

class ForkingServer : public Verbs {};

TEST_F(ForkingServer, ItsChildrenConnect) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "not under ThreadSanitizer";
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(cq);  // the engine runs
  struct Whole : Connected {
    void TestBody() override {
      const Ends ends = connector_->connect(plain());
      ASSERT_TRUE(ends.a && ends.b);
      EXPECT_EQ(write(ends.a->qp, 5), 0);
      EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
    }
    void run() {
      SetUp();
      if (!HasFatalFailure()) TestBody();
      TearDown();
    }
  };
  for (int i = 0; i < 2; ++i) in_child([] { Whole().run(); });
  Whole().run();
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

class Forks : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    if (HasFatalFailure()) return;
    ends_ = connector_->connect(plain());
    ASSERT_TRUE(ends_.a && ends_.b);
    exchange();
  }
  void exchange() {
    receive(ends_.b->qp, 7, 0, 100);
    ASSERT_EQ(post_send(ends_.a->qp, 0, {our_address(0), 100, mr_->lkey}), 0);
    EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
    EXPECT_EQ(wait_for(peer_cq_).wr_id, 7u);
  }

  Ends ends_;
};

TEST_F(Forks, AChildThatExitsOrExecsLeavesConnectionsAlone) {
  in_child([] {});
  exchange();
  in_child([] {
    execl("/bin/true", "true", nullptr);
    ADD_FAILURE() << strerror(errno);
  });
  exchange();
}

TEST_F(Forks, AChildCannotUseWhatTheParentOpened) {
  in_child([&] {
    EXPECT_EQ(write(ends_.a->qp, 1), ENODEV);
    ibv_recv_wr wr{}, *bad;
    EXPECT_EQ(ibv_post_recv(ends_.a->qp, &wr, &bad), ENODEV);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(ends_.a->qp, &attr, IBV_QP_STATE), ENODEV);
    ibv_qp_init_attr init = init_attr(false);
    EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &init), ENODEV);
    EXPECT_EQ(ibv_destroy_qp(ends_.a->qp), 0);  // its own copy
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq_, 1, &wc), 0);
    EXPECT_NULL_ERRNO(ibv_import_pd(context_, pd_->handle), ENODEV);
    EXPECT_NULL_ERRNO(ibv_import_device(context_->cmd_fd), EOPNOTSUPP);
  });
  EXPECT_EQ(state_of(ends_.a->qp), IBV_QPS_RTS);
  exchange();
}

// Whatever threads of the parent are inside of at the fork, and whatever the engine was to do.
TEST_F(Forks, AChildWaitsForNothingOfTheParent) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "not under ThreadSanitizer";
  constexpr int kForks = 300;
  constexpr unsigned kHangs = 60;  // seconds; SIGALRM ends the child then
  ibv_comp_channel* const channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  std::atomic<bool> over{false};
  std::thread writes([&] {
    ibv_wc wc;
    for (uint64_t posted = 0, done = 0; !over || done < posted;) {
      if (!over && posted - done < 8 && write(ends_.a->qp, posted) == 0) ++posted;
      done += static_cast<uint64_t>(ibv_poll_cq(cq_, 1, &wc));
    }
  });
  std::thread makes_queues([&] {
    for (int i = 0; !over; ++i) {
      EXPECT_EQ(ibv_req_notify_cq(peer_cq_, 0), 0);
      EXPECT_EQ(ibv_resize_cq(peer_cq_, 4096 + i % 2), 0);
      ibv_cq* const cq = ibv_create_cq(context_, 4, nullptr, channel, 0);
      EXPECT_EQ(ibv_destroy_cq(cq), 0);
    }
  });
  for (int i = 0; i < kForks && !HasFailure(); ++i) {
    in_child([&] {
      alarm(kHangs);
      ibv_wc wc;
      EXPECT_EQ(ibv_poll_cq(cq_, 1, &wc), 0);
      EXPECT_EQ(ibv_req_notify_cq(cq_, 0), ENODEV);
      EXPECT_EQ(ibv_resize_cq(cq_, 64), ENODEV);
      EXPECT_NULL_ERRNO(ibv_create_cq(context_, 4, nullptr, channel, 0), ENODEV);
      EXPECT_NULL_ERRNO(ibv_alloc_pd(context_), ENODEV);
      ibv_srq_init_attr srq{};
      srq.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
      EXPECT_NULL_ERRNO(ibv_create_srq(pd_, &srq), ENODEV);
      EXPECT_EQ(write(ends_.a->qp, 1), ENODEV);
      for (rdma_cm_id* id : {ends_.a, ends_.b}) EXPECT_EQ(ibv_destroy_qp(id->qp), 0);
      for (ibv_cq* cq : {cq_, peer_cq_}) EXPECT_EQ(ibv_destroy_cq(cq), 0);
    });
  }
  over = true;
  writes.join();
  makes_queues.join();
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  exchange();
}

TEST_F(Forks, AChildOpensTheDeviceItself) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "not under ThreadSanitizer";
  in_child([&] {
    ibv_context* context = ibv_open_device(context_->device);
    ASSERT_NE(context, nullptr);
    ibv_pd* pd = ibv_alloc_pd(context);
    ibv_cq* cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
    ASSERT_TRUE(pd && cq);
    ibv_qp_init_attr init = init_attr(false);
    init.send_cq = init.recv_cq = cq;
    ibv_qp* qp = ibv_create_qp(pd, &init);
    ASSERT_NE(qp, nullptr);
    ibv_recv_wr wr{}, *bad;
    EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    EXPECT_EQ(wait_for(cq).status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  });
  exchange();
}

}  // namespace
}  // namespace uiw::provider_test
