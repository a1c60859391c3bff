// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Data gets where it belongs: Send, Write, Read of all sizes and shapes.
#include "sim/media.h"

namespace uiw::test {
namespace {

class Transfer : public Behaviour {};

const size_t kSizes[] = {0, 1, 3, 64, 512, 513, 4096, 64736, 64737, 64738, 100000, 1 << 20};

TEST_P(Transfer, SendsOfManySizes) {
  connect();
  for (size_t size : kSizes) {
    SCOPED_TRACE(size);
    Buffer from(a->memory, pattern(size, 3)), to(b->memory, size);
    const size_t before = b->received_count();
    ASSERT_EQ(b->receive(RecvWr({to.sge()}, size)), 0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, size)), 0);
    ASSERT_REACHED(b->received_count() == before + 1 && a->sent_count() == before + 1);
    const ibv_wc got = b->received().back(), sent = a->sent().back();
    EXPECT_EQ(got.status, IBV_WC_SUCCESS);
    EXPECT_EQ(got.opcode, IBV_WC_RECV);
    EXPECT_EQ(got.byte_len, size);
    EXPECT_EQ(got.wr_id, size);
    EXPECT_EQ(got.qp_num, b->qp_num);
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent.opcode, IBV_WC_SEND);
    EXPECT_EQ(sent.wr_id, size);
    EXPECT_EQ(sent.qp_num, a->qp_num);
    EXPECT_TRUE(to.content() == from.content());
  }
}

TEST_P(Transfer, WritesAndReadsOfManySizes) {
  connect();
  uint64_t id = 0;
  for (size_t size : kSizes) {
    SCOPED_TRACE(size);
    Buffer from(a->memory, pattern(size, 5)), target(b->memory, size), back(a->memory, size);
    ASSERT_EQ(
        a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, id++).to(target.start(), target.stag())),
        0);
    ASSERT_EQ(
        a->post(SendWr(IBV_WR_RDMA_READ, {back.sge()}, id++).to(target.start(), target.stag())), 0);
    ASSERT_REACHED(a->sent_count() == id);
    EXPECT_TRUE(target.content() == from.content());
    EXPECT_TRUE(back.content() == from.content());
  }
  const auto done = a->sent();
  expect_in_order(done);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.at(0).opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(done.at(1).opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(b->received_count(), 0u);  // one-sided
}

}  // namespace

UIWARP_EVERYWHERE(Transfer, 20);

}  // namespace uiw::test
