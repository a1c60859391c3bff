// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What --check takes for outstanding when two threads post with one wr_id, in front of a stack that
// refuses what the first one posts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "check/wraps.h"

namespace uiw::check {
namespace {

constexpr uint32_t kNumber = 7;
constexpr int kPatience = 200;  // looks of a millisecond: what is waited for comes at once, if ever

std::atomic<int> posts{0};
std::atomic<bool> second_may_post{false};
std::atomic<bool> second_is_over{false};
bool completes_as_receive = false;

// Of the first one, which is not refused before the second was posted and polled, if that is
// possible meanwhile; and of the second.
int answer() {
  if (posts++ > 0) return 0;
  second_may_post = true;
  for (int i = 0; i < kPatience && !second_is_over; ++i) usleep(1000);
  return ENOMEM;
}

int poll_one(uiwarp_cq*, int, ibv_wc* wc) {
  *wc = {};
  wc->qp_num = kNumber;
  wc->opcode = completes_as_receive ? IBV_WC_RECV : IBV_WC_SEND;
  return 1;
}

uiwarp_verbs stack() {
  uiwarp_verbs verbs{};
  verbs.qp_post_send = [](uiwarp_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
    *bad = wr;
    return answer();
  };
  verbs.qp_post_recv = [](uiwarp_qp*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    *bad = wr;
    return answer();
  };
  verbs.srq_post_recv = [](uiwarp_srq*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    *bad = wr;
    return answer();
  };
  verbs.qp_batch_begin = [](uiwarp_qp*) {};
  verbs.qp_batch_add = [](uiwarp_qp*, const ibv_send_wr*) { return 0; };
  verbs.qp_batch_end = [](uiwarp_qp*, int) { return answer(); };
  verbs.qp_query = [](uiwarp_qp*, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
    attr->qp_state = IBV_QPS_RTS;
    return 0;
  };
  verbs.cq_poll = poll_one;
  verbs.cq_has_overflowed = [](uiwarp_cq*) { return 0; };
  verbs.cq_waiting = [](uiwarp_cq*, uint32_t* messages) { return *messages = 0; };
  return verbs;
}

class PostingByTwoThreads : public testing::Test {
 protected:
  void SetUp() override {
    static const uiwarp_verbs verbs = stack();
    next = &verbs;
    posts = 0;
    second_may_post = second_is_over = completes_as_receive = false;
    pd_.context = &context_;
    cq_.context = &context_;
    srq_.pd = &pd_;
    qp_.pd = &pd_;
    qp_.send_cq = qp_.recv_cq = &cq_;
    qp_.number = kNumber;
    context_.qps[kNumber] = &qp_;
  }

  static ibv_send_wr send() {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    return wr;
  }

  int post_send() {
    ibv_send_wr wr = send(), *bad = nullptr;
    return wrap::qp_post_send(handle_of(&qp_), &wr, &bad);
  }

  // The second one posts, and its completion is polled.
  template <class First, class Second>
  void run(First first, Second second) {
    std::thread other([&] {
      while (!second_may_post) std::this_thread::yield();
      EXPECT_EQ(second(), 0);
      ibv_wc wc;
      EXPECT_EQ(wrap::cq_poll(handle_of(&cq_), 1, &wc), 1);
      second_is_over = true;
    });
    EXPECT_EQ(first(), ENOMEM);
    other.join();
  }

  Context context_{std::make_shared<CommandSpace>()};
  Pd pd_;
  Cq cq_;
  Srq srq_;
  Qp qp_;
};

TEST_F(PostingByTwoThreads, LeavesNoSendThatWasRefused) {
  run([&] { return post_send(); }, [&] { return post_send(); });
  EXPECT_EQ(qp_.sends.size(), 0u);
}

TEST_F(PostingByTwoThreads, LeavesNoReceiveThatWasRefused) {
  completes_as_receive = true;
  const auto post = [&] {
    ibv_recv_wr wr{}, *bad = nullptr;
    return wrap::qp_post_recv(handle_of(&qp_), &wr, &bad);
  };
  run(post, post);
  EXPECT_EQ(qp_.receives.size(), 0u);
}

TEST_F(PostingByTwoThreads, LeavesNoReceiveThatASharedQueueRefused) {
  completes_as_receive = true;
  qp_.srq = &srq_;
  const auto post = [&] {
    ibv_recv_wr wr{}, *bad = nullptr;
    return wrap::srq_post_recv(handle_of(&srq_), &wr, &bad);
  };
  run(post, post);
  EXPECT_EQ(srq_.receives.size(), 0u);
}

TEST_F(PostingByTwoThreads, LeavesNoneOfASectionThatWasRefused) {
  const auto section = [&] {
    const ibv_send_wr wr = send();
    wrap::qp_batch_begin(handle_of(&qp_));
    EXPECT_EQ(wrap::qp_batch_add(handle_of(&qp_), &wr), 0);
    return wrap::qp_batch_end(handle_of(&qp_), 1);
  };
  run(section, [&] { return post_send(); });
  EXPECT_EQ(qp_.sends.size(), 0u);
}

}  // namespace
}  // namespace uiw::check
