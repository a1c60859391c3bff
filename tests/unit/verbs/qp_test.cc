// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "device/device.h"
#include "support.h"

namespace uiw::verbs {
namespace {

using device::Limits;

class QueuePairs : public test::OpenDevice {
 protected:
  void SetUp() override {
    OpenDevice::SetUp();
    cq_ = make_cq();
  }
  void TearDown() override {
    destroy(cq_);
    OpenDevice::TearDown();
  }
  int create(uiwarp_qp_init init) {
    uiwarp_qp* qp = nullptr;
    uint32_t qp_num;
    const int error = uiwarp_qp_create(pd_, &init, &qp, &qp_num);
    if (error == 0) destroy(qp);
    got_ = init.cap;
    return error;
  }
  uiwarp_cq* cq_ = nullptr;
  ibv_qp_cap got_{};
};

TEST_F(QueuePairs, OnlyReliableConnectedOnes) {
  uiwarp_qp_init init = qp_init(cq_);
  for (int type :
       {int{IBV_QPT_UD}, int{IBV_QPT_UC}, int{IBV_QPT_RAW_PACKET}, int{IBV_QPT_XRC_SEND}, 0, 77}) {
    init.qp_type = type;
    EXPECT_EQ(create(init), EOPNOTSUPP) << type;
  }
}

TEST_F(QueuePairs, CapacitiesAreChecked) {
  struct {
    uint32_t ibv_qp_cap::*field;
    uint32_t most;
  } const limits[] = {
      {&ibv_qp_cap::max_send_wr, Limits::kMaxQpWr},
      {&ibv_qp_cap::max_recv_wr, Limits::kMaxQpWr},
      {&ibv_qp_cap::max_send_sge, Limits::kMaxSge},
      {&ibv_qp_cap::max_recv_sge, Limits::kMaxSge},
      {&ibv_qp_cap::max_inline_data, Limits::kMaxInline},
  };
  for (const auto& limit : limits) {
    uiwarp_qp_init init = qp_init(cq_);
    init.cap.*limit.field = limit.most;
    EXPECT_EQ(create(init), 0);
    EXPECT_GE(got_.*limit.field, limit.most);
    init.cap.*limit.field = limit.most + 1;
    EXPECT_EQ(create(init), EINVAL);
  }
}

TEST_F(QueuePairs, BothQueuesAreNeeded) {
  uiwarp_qp_init init = qp_init(cq_);
  init.send_cq = nullptr;
  EXPECT_EQ(create(init), EINVAL);
  init = qp_init(cq_);
  init.recv_cq = nullptr;
  EXPECT_EQ(create(init), EINVAL);
}

TEST_F(QueuePairs, QueuesOfAnotherContextAreRefused) {
  uiwarp_context* other = nullptr;
  int other_fd = -1;
  ASSERT_EQ(uiwarp_context_open(uiwarp_device_find("uiw_lo"), 0, &other, &other_fd), 0);
  uiwarp_cq* foreign = nullptr;
  int actual;
  ASSERT_EQ(uiwarp_cq_create(other, 4, -1, 0, nullptr, nullptr, &foreign, &actual), 0);
  EXPECT_EQ(create(qp_init(foreign)), EINVAL);
  destroy(foreign);
  uiwarp_context_close(other);
  close(other_fd);
}

TEST_F(QueuePairs, BeginInInit) {
  uiwarp_qp* qp = make_qp(cq_);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(uiwarp_qp_query(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(init.cap.max_send_wr, 4u);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  destroy(qp);
}

TEST_F(QueuePairs, ReachRtsOnlyWithAPeer) {
  uiwarp_qp* qp = make_qp(cq_);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_STATE), EINVAL);
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_STATE), EINVAL);
  destroy(qp);
}

// Drivers look at the rights that they know: newer callers pass more.
TEST_F(QueuePairs, RightsThatNobodyKnowsAreIgnored) {
  constexpr unsigned kKnown = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                              IBV_ACCESS_MW_BIND;
  uiwarp_qp* qp = make_qp(cq_);
  for (unsigned bit = 0; bit < 32; ++bit) {
    SCOPED_TRACE(bit);
    ibv_qp_attr attr{};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | 1u << bit;
    EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
    ibv_qp_attr now{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(uiwarp_qp_query(qp, &now, IBV_QP_ACCESS_FLAGS, &init), 0);
    EXPECT_EQ(now.qp_access_flags, attr.qp_access_flags & kKnown);
  }
  destroy(qp);
}

TEST_F(QueuePairs, ModifyChecksItsArguments) {
  uiwarp_qp* qp = make_qp(cq_);
  const auto modify = [qp](int mask, void (*set)(ibv_qp_attr&)) {
    ibv_qp_attr attr{};
    set(attr);
    return uiwarp_qp_modify(qp, &attr, mask);
  };
  EXPECT_EQ(modify(1 << 30, [](auto&) {}), EOPNOTSUPP);
  EXPECT_EQ(modify(IBV_QP_QKEY, [](auto&) {}), EINVAL);
  EXPECT_EQ(modify(IBV_QP_CAP, [](auto&) {}), EOPNOTSUPP);
  EXPECT_EQ(modify(IBV_QP_RATE_LIMIT, [](auto&) {}), EOPNOTSUPP);
  EXPECT_EQ(modify(IBV_QP_EN_SQD_ASYNC_NOTIFY, [](auto& attr) { attr.en_sqd_async_notify = 1; }),
            EOPNOTSUPP);
  EXPECT_EQ(modify(IBV_QP_EN_SQD_ASYNC_NOTIFY, [](auto&) {}), 0);
  EXPECT_EQ(modify(IBV_QP_PKEY_INDEX, [](auto& attr) { attr.pkey_index = 1; }), EINVAL);
  EXPECT_EQ(
      modify(IBV_QP_MAX_QP_RD_ATOMIC, [](auto& attr) { attr.max_rd_atomic = Limits::kMaxReads; }),
      0);
  EXPECT_EQ(modify(IBV_QP_MAX_QP_RD_ATOMIC,
                   [](auto& attr) { attr.max_rd_atomic = Limits::kMaxReads + 1; }),
            EINVAL);
  EXPECT_EQ(modify(IBV_QP_MAX_DEST_RD_ATOMIC,
                   [](auto& attr) { attr.max_dest_rd_atomic = Limits::kMaxReads + 1; }),
            EINVAL);
  EXPECT_EQ(modify(IBV_QP_CUR_STATE, [](auto& attr) { attr.cur_qp_state = IBV_QPS_RTS; }), EINVAL);
  EXPECT_EQ(modify(IBV_QP_CUR_STATE, [](auto& attr) { attr.cur_qp_state = IBV_QPS_INIT; }), 0);
  EXPECT_EQ(modify(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
                       IBV_QP_PATH_MTU | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN,
                   [](auto& attr) { attr.timeout = 14; }),
            0);
  // A refused call changes nothing.
  EXPECT_EQ(modify(IBV_QP_STATE | IBV_QP_CAP, [](auto& attr) { attr.qp_state = IBV_QPS_ERR; }),
            EOPNOTSUPP);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(uiwarp_qp_query(qp, &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_INIT);
  destroy(qp);
}

TEST_F(QueuePairs, HoldTheirDomain) {
  uiwarp_qp* qp = make_qp(cq_);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  destroy(qp);
}

TEST_F(QueuePairs, ReceivesEndAtTheDepth) {
  uiwarp_qp* qp = make_qp(cq_);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post_recv(qp, i), 0);
  EXPECT_EQ(post_recv(qp, 9), ENOMEM);
  destroy(qp);
}

TEST_F(QueuePairs, SendingNeedsAConnection) {
  uiwarp_qp* qp = make_qp(cq_);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.opcode = IBV_WR_SEND;
  EXPECT_EQ(uiwarp_qp_post_send(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  destroy(qp);
}

TEST_F(QueuePairs, AsyncEventsAreCountedOrTakenBack) {
  int user = 0;
  uiwarp_srq* srq = make_srq();
  for (bool read_it : {true, false}) {
    uiwarp_qp* qp = make_qp(cq_, srq, &user);
    to_error(qp);  // an SRQ's queue pair says that it takes no more
    if (read_it) {
      EventRecord record;
      ASSERT_EQ(read(async_fd_, &record, sizeof record), static_cast<ssize_t>(sizeof record));
      EXPECT_EQ(record.element, reinterpret_cast<uintptr_t>(&user));
      EXPECT_EQ(record.type, static_cast<uint32_t>(IBV_EVENT_QP_LAST_WQE_REACHED));
    }
    destroy(qp, read_it ? 1 : 0);
    EXPECT_FALSE(test::readable(async_fd_));
  }
  destroy(srq);
}

TEST_F(QueuePairs, EndAtTheLimit) {
  std::vector<uiwarp_qp*> qps;
  uiwarp_qp_init init = qp_init(cq_);
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  uint32_t qp_num;
  while (qps.size() < Limits::kMaxQp) {
    uiwarp_qp* qp = nullptr;
    ASSERT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), 0) << qps.size();
    qps.push_back(qp);
  }
  uiwarp_qp* qp = nullptr;
  EXPECT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), ENOMEM);
  for (uiwarp_qp* each : qps) destroy(each);
}

class SharedReceiveQueues : public QueuePairs {};

TEST_F(SharedReceiveQueues, SizesAreChecked) {
  uiwarp_srq* srq = nullptr;
  for (ibv_srq_attr attr : {ibv_srq_attr{0, 1, 0}, ibv_srq_attr{Limits::kMaxSrqWr + 1, 1, 0},
                            ibv_srq_attr{1, Limits::kMaxSge + 1, 0}})
    EXPECT_EQ(uiwarp_srq_create(pd_, &attr, nullptr, &srq), EINVAL);
  ibv_srq_attr attr{Limits::kMaxSrqWr, Limits::kMaxSge, 0};
  ASSERT_EQ(uiwarp_srq_create(pd_, &attr, nullptr, &srq), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  destroy(srq);
}

TEST_F(SharedReceiveQueues, ModifyAndQuery) {
  uiwarp_srq* srq = make_srq(4, 2);
  ibv_srq_attr attr{};
  ASSERT_EQ(uiwarp_srq_query(srq, &attr), 0);
  EXPECT_EQ(attr.max_wr, 4u);
  EXPECT_EQ(attr.max_sge, 2u);
  EXPECT_EQ(attr.srq_limit, 0u);
  attr.srq_limit = 3;
  EXPECT_EQ(uiwarp_srq_modify(srq, &attr, IBV_SRQ_LIMIT), 0);
  attr = {};
  ASSERT_EQ(uiwarp_srq_query(srq, &attr), 0);
  EXPECT_EQ(attr.srq_limit, 3u);
  attr.srq_limit = 5;
  EXPECT_EQ(uiwarp_srq_modify(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(uiwarp_srq_modify(srq, &attr, 1 << 5), EINVAL);
  destroy(srq);
}

TEST_F(SharedReceiveQueues, Resize) {
  uiwarp_srq* srq = make_srq(4, 1);
  const auto resize = [srq](uint32_t max_wr, int more = 0, uint32_t limit = 0) {
    ibv_srq_attr attr{max_wr, 0, limit};
    return uiwarp_srq_modify(srq, &attr, IBV_SRQ_MAX_WR | more);
  };
  ibv_recv_wr wr{}, *bad;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(uiwarp_srq_post_recv(srq, &wr, &bad), 0);
  EXPECT_EQ(resize(0), EINVAL);
  EXPECT_EQ(resize(Limits::kMaxSrqWr + 1), EINVAL);
  EXPECT_EQ(resize(3), EINVAL);  // four are waiting
  EXPECT_EQ(resize(6, IBV_SRQ_LIMIT, 7), EINVAL);
  ibv_srq_attr attr{};
  ASSERT_EQ(uiwarp_srq_query(srq, &attr), 0);
  EXPECT_EQ(attr.max_wr, 4u);  // nothing has changed
  EXPECT_EQ(resize(6, IBV_SRQ_LIMIT, 6), 0);
  ASSERT_EQ(uiwarp_srq_query(srq, &attr), 0);
  EXPECT_EQ(attr.max_wr, 6u);
  EXPECT_EQ(attr.srq_limit, 6u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(uiwarp_srq_post_recv(srq, &wr, &bad), 0);
  EXPECT_EQ(uiwarp_srq_post_recv(srq, &wr, &bad), ENOMEM);
  destroy(srq);
}

TEST_F(SharedReceiveQueues, PostingStopsAtTheBadOne) {
  uiwarp_srq* srq = make_srq(2, 1);
  ibv_sge sges[2] = {};
  ibv_recv_wr wrs[3] = {};
  for (int i = 0; i < 2; ++i) wrs[i].next = &wrs[i + 1];
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(uiwarp_srq_post_recv(srq, wrs, &bad), ENOMEM);
  EXPECT_EQ(bad, &wrs[2]);
  wrs[2].sg_list = sges;
  wrs[2].num_sge = 2;
  EXPECT_EQ(uiwarp_srq_post_recv(srq, &wrs[2], &bad), EINVAL);
  destroy(srq);
}

TEST_F(SharedReceiveQueues, BusyWhileAQueuePairUsesIt) {
  uiwarp_srq* srq = make_srq();
  uiwarp_qp_init init = qp_init(cq_, srq);
  init.cap.max_recv_wr = ~0u;  // ignored with an SRQ
  uiwarp_qp* qp = nullptr;
  uint32_t qp_num, async;
  ASSERT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), 0);
  EXPECT_EQ(init.cap.max_recv_wr, 0u);
  EXPECT_EQ(uiwarp_srq_destroy(srq, &async), EBUSY);
  destroy(qp);
  destroy(srq);
}

TEST_F(SharedReceiveQueues, EndAtTheLimit) {
  std::vector<uiwarp_srq*> srqs;
  while (srqs.size() < Limits::kMaxSrq) {
    srqs.push_back(make_srq(1));
    ASSERT_NE(srqs.back(), nullptr);
  }
  uiwarp_srq* srq = nullptr;
  ibv_srq_attr attr{1, 1, 0};
  EXPECT_EQ(uiwarp_srq_create(pd_, &attr, nullptr, &srq), ENOMEM);
  for (uiwarp_srq* each : srqs) destroy(each);
}

}  // namespace
}  // namespace uiw::verbs
