// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs that a program moves to RTS for a connection of rdma_cm. With the face that has this:
// UIWARP_FACE=roce.
#include "core/qp_number.h"

#include <cerrno>

#include "device/face.h"
#include "support.h"
#include "verbs/registry.h"

namespace uiw::verbs {
namespace {

class ForConnectionOfRdmaCm : public test::OpenDevice {
 protected:
  void SetUp() override {
    if (device::face().cm != device::CmRules::kInfiniband)
      GTEST_SKIP() << "rdma_cm itself moves the queue pairs of this face";
    OpenDevice::SetUp();
    cq_ = make_cq();
    uiwarp_qp_init init = qp_init(cq_);
    ASSERT_EQ(uiwarp_qp_create(pd_, &init, &qp_, &qp_num_), 0);
    ASSERT_EQ(modify(IBV_QPS_INIT, IBV_QP_PORT), 0);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    destroy(qp_);
    destroy(cq_);
    OpenDevice::TearDown();
  }
  int modify(ibv_qp_state state, int mask) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    attr.port_num = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid.raw[15] = 1;
    attr.dest_qp_num = core::kCmQpNumber;
    attr.max_dest_rd_atomic = 4;
    attr.max_rd_atomic = 3;
    attr.timeout = 9;
    return uiwarp_qp_modify(qp_, &attr, mask | IBV_QP_STATE);
  }
  int to_rtr() { return modify(IBV_QPS_RTR, IBV_QP_AV | IBV_QP_DEST_QPN); }
  int to_rts() { return modify(IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_MAX_QP_RD_ATOMIC); }
  ibv_qp_attr queried() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(uiwarp_qp_query(qp_, &attr, 0, &init), 0);
    return attr;
  }

  uiwarp_cq* cq_ = nullptr;
  uiwarp_qp* qp_ = nullptr;
  uint32_t qp_num_ = 0;
};

TEST_F(ForConnectionOfRdmaCm, GoesToRtsAndWhatIsPostedWaits) {
  ASSERT_EQ(to_rtr(), 0);
  ASSERT_EQ(to_rts(), 0);
  const ibv_qp_attr attr = queried();
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.dest_qp_num, core::kCmQpNumber);
  EXPECT_EQ(attr.timeout, 9);
  EXPECT_EQ(attr.max_rd_atomic, 3);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  EXPECT_EQ(uiwarp_qp_post_send(qp_, &wr, &bad), 0);
  EXPECT_EQ(claim_queue_pair(qp_num_), 0);
  EXPECT_EQ(claim_queue_pair(qp_num_), 0);  // and stays as it is
}

TEST_F(ForConnectionOfRdmaCm, GoesThereInOrder) {
  EXPECT_EQ(to_rts(), EINVAL);
  ASSERT_EQ(to_rtr(), 0);
  EXPECT_EQ(to_rtr(), EINVAL);
  ASSERT_EQ(modify(IBV_QPS_RESET, 0), 0);
  EXPECT_EQ(to_rtr(), EINVAL);
  ASSERT_EQ(modify(IBV_QPS_INIT, IBV_QP_PORT), 0);
  EXPECT_EQ(to_rtr(), 0);
}

// As when it was not moved before its connection stood.
TEST_F(ForConnectionOfRdmaCm, MayBeThereAlready) {
  ASSERT_EQ(claim_queue_pair(qp_num_), 0);
  ASSERT_EQ(queried().qp_state, IBV_QPS_RTS);
  EXPECT_EQ(to_rtr(), 0);
  EXPECT_EQ(to_rts(), 0);
  EXPECT_EQ(queried().qp_state, IBV_QPS_RTS);
}

}  // namespace
}  // namespace uiw::verbs
