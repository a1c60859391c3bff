// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What ibv_query_device and ibv_query_port say can be had is had, and one more is refused. The
// limits of how many objects there may be are in tests/unit/verbs.
#include "connected.h"

namespace uiw::provider_test {
namespace {

class Limits : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_EQ(ibv_query_device(context_, &device_), 0);
    ASSERT_EQ(ibv_query_port(context_, 1, &port_), 0);
  }
  uint32_t most(int attribute) const { return static_cast<uint32_t>(attribute); }
  // The active end's queue pair has the most of everything and the ibv_wr_*() calls.
  Ends connect_greatest(uint8_t reads = 4) {
    return connector_->connect(
        [this](rdma_cm_id* id, bool passive) {
          const ibv_qp_init_attr common = init_attr(passive);
          ibv_qp_init_attr_ex init{};
          std::memcpy(&init, &common, sizeof common);
          init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
          init.pd = pd_;
          init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
          init.cap.max_send_wr = init.cap.max_recv_wr = most(device_.max_qp_wr);
          init.cap.max_send_sge = init.cap.max_recv_sge = most(device_.max_sge);
          ASSERT_EQ(rdma_create_qp_ex(id, &init), 0) << strerror(errno);
          EXPECT_EQ(init.cap.max_send_wr, most(device_.max_qp_wr));
          EXPECT_EQ(init.cap.max_recv_sge, most(device_.max_sge));
        },
        reads);
  }

  ibv_device_attr device_{};
  ibv_port_attr port_{};
};

TEST_F(Limits, WorkRequestsOfAQueuePair) {
  const Ends ends = connect_greatest();
  ASSERT_TRUE(ends.b);
  ibv_recv_wr wr{}, *bad;
  for (int i = 0; i < device_.max_qp_wr; ++i)
    ASSERT_EQ(ibv_post_recv(ends.a->qp, &wr, &bad), 0) << i;
  EXPECT_EQ(ibv_post_recv(ends.a->qp, &wr, &bad), ENOMEM);
  // In one batch, so that none of them is done before the last is posted.
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(ends.a->qp);
  ASSERT_NE(ex, nullptr);
  ex->wr_flags = 0;
  for (int more : {1, 0}) {
    ibv_wr_start(ex);
    for (int i = 0; i < device_.max_qp_wr + more; ++i) {
      if (i == device_.max_qp_wr - 1) ex->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_rdma_write(ex, 0, 0);
    }
    EXPECT_EQ(ibv_wr_complete(ex), more ? ENOMEM : 0);
  }
  EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
}

TEST_F(Limits, WorkRequestsOfASharedReceiveQueue) {
  ibv_srq_init_attr init{nullptr, {most(device_.max_srq_wr), most(device_.max_srq_sge), 0}};
  ibv_srq* srq = ibv_create_srq(pd_, &init);
  ASSERT_NE(srq, nullptr);
  std::vector<ibv_sge> list(most(device_.max_srq_sge) + 1);
  ibv_recv_wr wr{}, *bad;
  wr.sg_list = list.data();
  wr.num_sge = device_.max_srq_sge + 1;
  EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
  wr.num_sge = device_.max_srq_sge;
  for (int i = 0; i < device_.max_srq_wr; ++i) ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0) << i;
  EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Limits, ScatterGatherElements) {
  const Ends ends = connect_greatest();
  ASSERT_TRUE(ends.b);
  const uint32_t count = most(device_.max_sge);
  std::vector<ibv_sge> from, to;
  for (uint32_t i = 0; i <= count; ++i) {
    from.push_back({our_address(i * 1000), 10 + i, mr_->lkey});
    to.push_back({their_address(i * 1000), 10 + i, peer_mr_->lkey});
  }
  for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_READ}) {
    SCOPED_TRACE(opcode);
    std::memset(theirs_, 0, kSize);
    ibv_recv_wr receive{}, *bad_receive;
    receive.sg_list = to.data();
    receive.num_sge = static_cast<int>(count) + 1;
    EXPECT_EQ(ibv_post_recv(ends.b->qp, &receive, &bad_receive), EINVAL);
    receive.num_sge = static_cast<int>(count);
    if (opcode == IBV_WR_SEND) EXPECT_EQ(ibv_post_recv(ends.b->qp, &receive, &bad_receive), 0);
    ibv_send_wr wr{}, *bad;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    // A Read scatters what lies in one piece.
    wr.wr.rdma = {our_address(30000), mr_->rkey};
    wr.sg_list = opcode == IBV_WR_SEND ? from.data() : to.data();
    wr.num_sge = static_cast<int>(count) + 1;
    EXPECT_EQ(ibv_post_send(ends.a->qp, &wr, &bad), EINVAL);
    wr.num_sge = static_cast<int>(count);
    EXPECT_EQ(ibv_post_send(ends.a->qp, &wr, &bad), 0);
    EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
    if (opcode == IBV_WR_SEND) EXPECT_EQ(wait_for(peer_cq_).status, IBV_WC_SUCCESS);
    size_t behind = 30000;
    for (uint32_t i = 0; i < count; ++i) {
      const char* expected = opcode == IBV_WR_SEND ? ours_ + i * 1000 : ours_ + behind;
      EXPECT_EQ(std::memcmp(theirs_ + i * 1000, expected, 10 + i), 0) << i;
      EXPECT_EQ(theirs_[i * 1000 + 10 + i], 0) << i;
      behind += 10 + i;
    }
    EXPECT_EQ(theirs_[count * 1000], 0);
  }
}

TEST_F(Limits, OutstandingReads) {
  const Ends ends = connect_greatest(static_cast<uint8_t>(device_.max_qp_rd_atom));
  ASSERT_TRUE(ends.b);
  for (ibv_qp* qp : {ends.a->qp, ends.b->qp}) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &init),
              0);
    EXPECT_EQ(attr.max_rd_atomic, device_.max_qp_init_rd_atom);
    EXPECT_EQ(attr.max_dest_rd_atomic, device_.max_qp_rd_atom);
  }
  // More than may be outstanding wait for their turn.
  const int count = 3 * device_.max_qp_rd_atom;
  for (int i = 0; i < count; ++i) {
    ibv_sge sink{their_address(static_cast<size_t>(i) * 64), 64, peer_mr_->lkey};
    ibv_send_wr wr{}, *bad;
    wr.wr_id = static_cast<uint64_t>(i);
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sink;
    wr.num_sge = 1;
    wr.wr.rdma = {our_address(static_cast<size_t>(i) * 64), mr_->rkey};
    ASSERT_EQ(ibv_post_send(ends.a->qp, &wr, &bad), 0);
  }
  for (int i = 0; i < count; ++i) {
    const ibv_wc wc = wait_for(cq_);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, static_cast<uint64_t>(i));
  }
  EXPECT_EQ(std::memcmp(ours_, theirs_, static_cast<size_t>(count) * 64), 0);
}

// `size` octets of zeros, a multiple of kShared, behind which lies a small file over and over: not
// every kernel has one page of zeros for all that was never written. To be unmapped as one.
void* repeated_zeros(size_t size) {
  constexpr size_t kShared = 16 << 20;
  const int file = memfd_create("uiwarp-test", 0);
  EXPECT_EQ(ftruncate(file, kShared), 0);
  void* const all =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (size_t at = 0; all != MAP_FAILED && at < size; at += kShared) {
    EXPECT_NE(mmap(static_cast<char*>(all) + at, kShared, PROT_READ,
                   MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0),
              MAP_FAILED);
  }
  close(file);
  return all;
}

// 2 GiB, without having as much: the receiver's SGEs, too, are all the same piece.
TEST_F(Limits, TheLargestMessage) {
  const size_t size = port_.max_msg_sz, piece = size / most(device_.max_sge);
  ASSERT_EQ(size, size_t{1} << 31);
  void* zeros = repeated_zeros(size);
  void* sink = mmap(nullptr, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_TRUE(zeros != MAP_FAILED && sink != MAP_FAILED);
  static_cast<char*>(sink)[piece - 1] = 'x';
  ibv_mr* from = ibv_reg_mr(pd_, zeros, size, 0);
  ibv_mr* to = ibv_reg_mr(pd_, sink, piece, int{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_TRUE(from && to);
  const Ends ends = connect_greatest();
  ASSERT_TRUE(ends.b);

  std::vector<ibv_sge> pieces(most(device_.max_sge), {reinterpret_cast<uintptr_t>(sink),
                                                      static_cast<uint32_t>(piece), to->lkey});
  ibv_recv_wr receive{}, *bad_receive;
  receive.sg_list = pieces.data();
  receive.num_sge = device_.max_sge;
  ASSERT_EQ(ibv_post_recv(ends.b->qp, &receive, &bad_receive), 0);
  ibv_sge all[] = {{reinterpret_cast<uintptr_t>(zeros), static_cast<uint32_t>(size), from->lkey},
                   {reinterpret_cast<uintptr_t>(zeros), 1, from->lkey}};
  ibv_send_wr wr{}, *bad;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = all;
  wr.num_sge = 2;
  EXPECT_EQ(ibv_post_send(ends.a->qp, &wr, &bad), EINVAL);
  wr.num_sge = 1;
  ASSERT_EQ(ibv_post_send(ends.a->qp, &wr, &bad), 0);
  const ibv_wc sent = wait_for(cq_), received = wait_for(peer_cq_);
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.byte_len, size);
  EXPECT_EQ(static_cast<char*>(sink)[piece - 1], 0);

  connector_.reset();
  EXPECT_EQ(ibv_dereg_mr(from), 0);
  EXPECT_EQ(ibv_dereg_mr(to), 0);
  munmap(zeros, size);
  munmap(sink, piece);
}

}  // namespace
}  // namespace uiw::provider_test
