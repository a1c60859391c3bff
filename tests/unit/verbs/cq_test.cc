// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/cq.h"

#include <cerrno>

#include "support.h"
#include "support/stranger.h"

namespace uiw::verbs {
namespace {

using device::Limits;
using test::Channel;

class CompletionQueues : public test::OpenDevice {
 protected:
  static uint64_t name(const int& user) { return reinterpret_cast<uintptr_t>(&user); }
  void complete(uiwarp_cq* cq) { cq->queue->push(stranger_.completion(), true); }
  void event(uiwarp_cq* cq) {
    EXPECT_EQ(uiwarp_cq_arm(cq, 0), 0);
    complete(cq);
  }

  uiw::test::Stranger stranger_;
};

TEST_F(CompletionQueues, SizesAndVectorsAreChecked) {
  uiwarp_cq* cq = nullptr;
  int actual = 0;
  const int most = Limits::kMaxCqe;
  EXPECT_EQ(uiwarp_cq_create(context_, 0, -1, 0, nullptr, nullptr, &cq, &actual), EINVAL);
  EXPECT_EQ(uiwarp_cq_create(context_, -1, -1, 0, nullptr, nullptr, &cq, &actual), EINVAL);
  EXPECT_EQ(uiwarp_cq_create(context_, most + 1, -1, 0, nullptr, nullptr, &cq, &actual), EINVAL);
  EXPECT_EQ(
      uiwarp_cq_create(context_, 1, -1, uiwarp_comp_vectors(), nullptr, nullptr, &cq, &actual),
      EINVAL);
  EXPECT_EQ(uiwarp_cq_create(context_, 1, -1, -1, nullptr, nullptr, &cq, &actual), EINVAL);
  ASSERT_EQ(uiwarp_cq_create(context_, most, -1, 0, nullptr, nullptr, &cq, &actual), 0);
  EXPECT_EQ(actual, most);
  EXPECT_EQ(uiwarp_cq_resize(cq, 0, &actual), EINVAL);
  EXPECT_EQ(uiwarp_cq_resize(cq, most + 1, &actual), EINVAL);
  EXPECT_EQ(uiwarp_cq_resize(cq, 100, &actual), 0);
  EXPECT_GE(actual, 100);
  ibv_wc wc;
  EXPECT_EQ(uiwarp_cq_poll(cq, -1, &wc), -EINVAL);
  EXPECT_EQ(uiwarp_cq_poll(cq, 1, &wc), 0);
  destroy(cq);
}

TEST_F(CompletionQueues, EndAtTheLimit) {
  std::vector<uiwarp_cq*> cqs;
  while (cqs.size() < Limits::kMaxCq) {
    cqs.push_back(make_cq(1));
    ASSERT_NE(cqs.back(), nullptr);
  }
  uiwarp_cq* cq = nullptr;
  int actual = 0;
  EXPECT_EQ(uiwarp_cq_create(context_, 1, -1, 0, nullptr, nullptr, &cq, &actual), ENOMEM);
  for (uiwarp_cq* each : cqs) destroy(each);
}

TEST_F(CompletionQueues, BusyWhileAQueuePairUsesIt) {
  uiwarp_cq* cq = make_cq();
  uiwarp_qp* qp = make_qp(cq);
  uint32_t comp, async;
  EXPECT_EQ(uiwarp_cq_destroy(cq, &comp, &async), EBUSY);
  destroy(qp);
  destroy(cq);
}

TEST_F(CompletionQueues, EventsNameTheUser) {
  Channel channel;
  int user = 0;
  uiwarp_cq* cq = make_cq(16, channel.fd(), &user);
  complete(cq);
  EXPECT_TRUE(channel.read_all().empty());  // not armed
  event(cq);
  complete(cq);
  EXPECT_EQ(channel.read_all(), (std::vector<uint64_t>{name(user)}));
  destroy(cq, 1);  // one to be acknowledged
}

TEST_F(CompletionQueues, WithoutChannelArmingIsHarmless) {
  uiwarp_cq* cq = make_cq();
  event(cq);
  destroy(cq, 0);
}

TEST_F(CompletionQueues, DestroyTakesBackWhatWasNotRead) {
  Channel channel;
  int first = 0, second = 0;
  uiwarp_cq* a = make_cq(16, channel.fd(), &first);
  uiwarp_cq* b = make_cq(16, channel.fd(), &second);
  event(a);
  event(b);
  uint64_t read_first = 0;
  ASSERT_EQ(read(channel.fd(), &read_first, sizeof read_first), 8);
  EXPECT_EQ(read_first, name(first));
  event(a);
  event(a);
  event(b);
  destroy(a, 1);  // three events, two of them never seen
  EXPECT_EQ(channel.read_all(), (std::vector<uint64_t>{name(second), name(second)}));
  destroy(b, 2);
}

TEST_F(CompletionQueues, MoreEventsThanThePipeHolds) {
  Channel channel;
  int user = 0;
  constexpr uint32_t kMany = 10'000;
  uiwarp_cq* cq = make_cq(kMany, channel.fd(), &user);
  for (uint32_t i = 0; i < kMany; ++i) event(cq);
  uint32_t got = 0;
  while (test::readable(channel.fd())) {
    uint64_t element;
    ASSERT_EQ(read(channel.fd(), &element, sizeof element), 8);
    ASSERT_EQ(element, name(user));
    ++got;
    uiwarp_context_events_taken(context_, 0);
  }
  EXPECT_EQ(got, kMany);
  destroy(cq, kMany);
}

TEST_F(CompletionQueues, AChannelMustBeAPipe) {
  uiwarp_cq* cq = nullptr;
  int actual = 0;
  const int null = open("/dev/null", O_RDWR);
  EXPECT_EQ(uiwarp_cq_create(context_, 1, null, 0, nullptr, nullptr, &cq, &actual), EINVAL);
  close(null);
  EXPECT_EQ(uiwarp_cq_create(context_, 1, null, 0, nullptr, nullptr, &cq, &actual), EBADF);
}

TEST_F(CompletionQueues, OverflowIsAnAsyncEvent) {
  int user = 0;
  uiwarp_cq* cq = make_cq(1, -1, &user);
  for (int i = 0; i < 3; ++i) complete(cq);
  const auto events = test::read_all<EventRecord>(async_fd_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].element, name(user));
  EXPECT_EQ(events[0].type, static_cast<uint32_t>(IBV_EVENT_CQ_ERR));
  destroy(cq, 0, 1);

  cq = make_cq(1, -1, &user);
  for (int i = 0; i < 3; ++i) complete(cq);
  destroy(cq, 0, 0);  // never read
  EXPECT_FALSE(test::readable(async_fd_));
}

// A real queue pair: its flushed receives wake a waiter that wants solicited completions only.
TEST_F(CompletionQueues, ErrorCompletionsAreSolicited) {
  Channel channel;
  int user = 0;
  uiwarp_cq* cq = make_cq(16, channel.fd(), &user);
  uiwarp_qp* qp = make_qp(cq);
  EXPECT_EQ(post_recv(qp, 5), 0);
  EXPECT_EQ(uiwarp_cq_arm(cq, 1), 0);
  to_error(qp);
  uint64_t element = 0;
  ASSERT_EQ(read(channel.fd(), &element, sizeof element), 8);
  EXPECT_EQ(element, name(user));
  ibv_wc wc;
  ASSERT_EQ(uiwarp_cq_poll(cq, 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  destroy(qp);
  destroy(cq, 1);
}

TEST_F(CompletionQueues, DestroyingAQueuePairDropsItsCompletions) {
  uiwarp_cq* cq = make_cq();
  uiwarp_qp* dies = make_qp(cq);
  uiwarp_qp* stays = make_qp(cq);
  for (uiwarp_qp* qp : {dies, stays}) {
    EXPECT_EQ(post_recv(qp, qp == dies ? 1 : 2), 0);
    to_error(qp);
  }
  destroy(dies);
  ibv_wc wc[4];
  ASSERT_EQ(uiwarp_cq_poll(cq, 4, wc), 1);
  EXPECT_EQ(wc[0].wr_id, 2u);
  destroy(stays);
  destroy(cq);
}

}  // namespace
}  // namespace uiw::verbs
