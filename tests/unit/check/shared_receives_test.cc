// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What --check takes for posted to a shared receive queue after a queue pair that had taken some of
// it is gone, in front of a stack that does nothing.
#include <gtest/gtest.h>

#include <functional>

#include "check/wraps.h"

namespace uiw::check {
namespace {

constexpr uint32_t kNumber = 7;

std::function<void()> while_destroyed, while_polled, while_reset;

uiwarp_verbs stack() {
  uiwarp_verbs verbs{};
  verbs.srq_post_recv = [](uiwarp_srq*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
  verbs.qp_destroy = [](uiwarp_qp*, uint32_t*) {
    while_destroyed();
    return 0;
  };
  verbs.qp_modify = [](uiwarp_qp*, const ibv_qp_attr*, int) {
    while_reset();
    return 0;
  };
  verbs.cq_poll = [](uiwarp_cq*, int, ibv_wc* wc) {
    *wc = {};
    wc->wr_id = 2;
    wc->qp_num = kNumber;
    wc->opcode = IBV_WC_RECV;
    while_polled();
    return 1;
  };
  verbs.cq_has_overflowed = [](uiwarp_cq*) { return 0; };
  verbs.receives_dropped = [](uint32_t, const uint64_t*, uint32_t) {};
  return verbs;
}

class SharedReceives : public testing::Test {
 protected:
  void SetUp() override {
    static const uiwarp_verbs verbs = stack();
    next = &verbs;
    while_destroyed = while_polled = while_reset = [] {};
    pd_.context = &context_;
    cq_.context = &context_;
    srq_.pd = &pd_;
    qp_->pd = &pd_;
    qp_->send_cq = qp_->recv_cq = &cq_;
    qp_->srq = &srq_;
    qp_->number = kNumber;
    qp_->type = IBV_QPT_UC;  // of which moves are not looked at
    context_.qps[kNumber] = qp_;
    listen_for(*qp_);
    for (uint64_t wr_id = 1; wr_id <= 3; ++wr_id) {
      ibv_recv_wr wr{}, *bad = nullptr;
      wr.wr_id = wr_id;
      EXPECT_EQ(wrap::srq_post_recv(handle_of(&srq_), &wr, &bad), 0);
    }
  }

  static void drop_two() {
    const uint64_t wr_ids[] = {1, 3};
    wrap::receives_dropped(kNumber, wr_ids, 2);
  }
  void destroy() {
    uint32_t events;
    EXPECT_EQ(wrap::qp_destroy(handle_of(qp_), &events), 0);
  }
  std::vector<uint64_t> posted() const {
    std::vector<uint64_t> wr_ids;
    srq_.receives.each([&](const Request& each) { wr_ids.push_back(each.wr_id); });
    return wr_ids;
  }

  Context context_{std::make_shared<CommandSpace>()};
  Pd pd_;
  Cq cq_;
  Srq srq_;
  Qp* const qp_ = new Qp;  // which is buried with those that were destroyed
};

TEST_F(SharedReceives, ThatADestroyedQueuePairHadTakenAreOver) {
  while_destroyed = drop_two;
  destroy();
  EXPECT_EQ(posted(), std::vector<uint64_t>{2});
  drop_two();  // of nobody
  EXPECT_EQ(posted(), std::vector<uint64_t>{2});
}

TEST_F(SharedReceives, ThatAQueuePairHadTakenWhenItIsResetAreOver) {
  while_reset = drop_two;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(wrap::qp_modify(handle_of(qp_), &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(posted(), std::vector<uint64_t>{2});
  destroy();
}

// The stack has given the completion to one thread when another one destroys its queue pair.
TEST_F(SharedReceives, ThatArePolledMeanwhileAreOver) {
  while_polled = [&] { destroy(); };
  ibv_wc wc;
  EXPECT_EQ(wrap::cq_poll(handle_of(&cq_), 1, &wc), 1);
  EXPECT_EQ(posted(), (std::vector<uint64_t>{1, 3}));
}

}  // namespace
}  // namespace uiw::check
