// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Completion channels and async events through the stock calls, and destruction waiting for
// acknowledgements as the manual promises.
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "support.h"
#include "support/in_child.h"

namespace uiw::provider_test {
namespace {

class Events : public Verbs {
 protected:
  void SetUp() override {
    Verbs::SetUp();
    channel_ = ibv_create_comp_channel(context_);
    ASSERT_NE(channel_, nullptr);
    cq_ = ibv_create_cq(context_, 16, &cq_context_, channel_, 0);
    ASSERT_NE(cq_, nullptr);
  }
  void TearDown() override {
    if (cq_) {
      EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    }
    EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    Verbs::TearDown();
  }
  // A completion on `cq`: a receive that is flushed.
  void complete(ibv_cq* cq) {
    ibv_qp* qp = make_qp(cq);
    EXPECT_EQ(post_recv(qp, 1), 0);
    to_error(qp);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }

  int cq_context_ = 0;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

TEST_F(Events, AChannelInUseIsBusy) {
  EXPECT_EQ(ibv_destroy_comp_channel(channel_), EBUSY);
}

TEST_F(Events, AChannelServesWhoeverTheProcessBecomes) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "not under ThreadSanitizer";
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  constexpr uid_t kNobody = 65534;
  test::in_child([&] {
    ibv_context* const context = ibv_open_device(context_->device);
    if (!context) return 1;
    ibv_comp_channel* const channel = ibv_create_comp_channel(context);
    if (!channel || setresuid(kNobody, kNobody, kNobody) != 0) return 2;
    ibv_cq* const cq = ibv_create_cq(context, 4, nullptr, channel, 0);
    if (!cq) return 3;
    return ibv_destroy_cq(cq);
  });
}

TEST_F(Events, AnArmedQueueTells) {
  EXPECT_EQ(ibv_req_notify_cq(cq_, 0), 0);
  EXPECT_FALSE(readable(channel_->fd));
  complete(cq_);
  ibv_cq* from = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel_, &from, &context), 0);
  EXPECT_EQ(from, cq_);
  EXPECT_EQ(context, &cq_context_);
  ibv_ack_cq_events(cq_, 1);
  complete(cq_);
  EXPECT_FALSE(readable(channel_->fd));  // once per request
}

TEST_F(Events, ANonBlockingChannelSaysEagain) {
  const int flags = fcntl(channel_->fd, F_GETFL);
  ASSERT_EQ(fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK), 0);
  ibv_cq* from;
  void* context;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel_, &from, &context), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Events, DestroyForgetsEventsNobodyRead) {
  ibv_cq* other = ibv_create_cq(context_, 16, nullptr, channel_, 0);
  EXPECT_EQ(ibv_req_notify_cq(other, 0), 0);
  EXPECT_EQ(ibv_req_notify_cq(cq_, 0), 0);
  complete(other);
  complete(cq_);
  EXPECT_EQ(ibv_destroy_cq(other), 0);  // returns: its event was never read
  ibv_cq* from = nullptr;
  void* context;
  ASSERT_EQ(ibv_get_cq_event(channel_, &from, &context), 0);
  EXPECT_EQ(from, cq_);
  EXPECT_FALSE(readable(channel_->fd));
  ibv_ack_cq_events(cq_, 1);
}

TEST_F(Events, DestroyWaitsForTheAcknowledgement) {
  EXPECT_EQ(ibv_req_notify_cq(cq_, 0), 0);
  complete(cq_);
  ibv_cq* from;
  void* context;
  ASSERT_EQ(ibv_get_cq_event(channel_, &from, &context), 0);
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    destroyed = true;
  });
  EXPECT_FALSE(destroyed);
  ibv_ack_cq_events(from, 1);
  destroyer.join();
  cq_ = nullptr;
}

TEST_F(Events, AsyncEventsOfAQueuePair) {
  ibv_srq_init_attr init{nullptr, {4, 1, 0}};
  ibv_srq* srq = ibv_create_srq(pd_, &init);
  ibv_qp* qp = make_qp(cq_, srq);
  EXPECT_FALSE(readable(context_->async_fd));
  to_error(qp);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, qp);
  std::thread destroyer([&] { EXPECT_EQ(ibv_destroy_qp(qp), 0); });
  ibv_ack_async_event(&event);
  destroyer.join();

  qp = make_qp(cq_, srq);
  to_error(qp);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);  // returns: the event was never read
  EXPECT_FALSE(readable(context_->async_fd));
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Events, AnOverflowIsAnAsyncEvent) {
  ibv_cq* small = ibv_create_cq(context_, 1, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(small);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post_recv(qp, i), 0);
  to_error(qp);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, small);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(small), 0);
}

}  // namespace
}  // namespace uiw::provider_test
