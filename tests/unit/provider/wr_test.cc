// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ibv_wr_*() through the stock calls: what goes over the wire, and batches that are posted as a
// whole or not at all.
#include <thread>

#include "connected.h"

namespace uiw::provider_test {
namespace {

constexpr uint64_t kBasic =
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;

class WorkRequests : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    if (HasFatalFailure()) return;
    const Ends ends = connector_->connect(extended(kBasic));
    ASSERT_TRUE(ends.a && ends.a->qp && ends.b);
    qp_ = ends.a->qp;
    peer_ = ends.b->qp;
    ex_ = ibv_qp_to_qp_ex(qp_);
    ASSERT_NE(ex_, nullptr);
    EXPECT_EQ(ibv_qp_to_qp_ex(peer_), nullptr);
  }
  void next(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ex_->wr_id = wr_id;
    ex_->wr_flags = flags;
  }
  void expect_done(uint64_t wr_id, ibv_wc_opcode opcode) {
    const ibv_wc wc = wait_for(cq_);
    EXPECT_EQ(wc.wr_id, wr_id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    EXPECT_EQ(wc.opcode, opcode);
  }
  void expect_received(uint64_t wr_id, uint32_t length) {
    const ibv_wc wc = wait_for(peer_cq_);
    EXPECT_EQ(wc.wr_id, wr_id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, length);
  }
  // What was sent before has arrived, for it was not more than this.
  void expect_nothing_was_sent() {
    receive(peer_, 77, 0, 1);
    next(99);
    ibv_wr_start(ex_);
    ibv_wr_send(ex_);
    EXPECT_EQ(ibv_wr_complete(ex_), 0);
    expect_received(77, 0);
    expect_done(99, IBV_WC_SEND);
  }

  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  ibv_qp_ex* ex_ = nullptr;
};

TEST_F(WorkRequests, OneBatchOfEveryKind) {
  receive(peer_, 1, 1000, 200);
  receive(peer_, 2, 2000, 200);
  ibv_wr_start(ex_);
  next(10);
  ibv_wr_rdma_write(ex_, peer_mr_->rkey, their_address(0));
  const ibv_sge two[] = {{our_address(0), 100, mr_->lkey}, {our_address(500), 50, mr_->lkey}};
  ibv_wr_set_sge_list(ex_, 2, two);
  next(11);
  ibv_wr_send(ex_);
  ibv_wr_set_sge(ex_, mr_->lkey, our_address(100), 100);
  next(12);
  ibv_wr_send(ex_);  // no setter: a message without octets
  next(13);
  ibv_wr_rdma_read(ex_, peer_mr_->rkey, their_address(0));
  ibv_wr_set_sge(ex_, mr_->lkey, our_address(40000), 150);
  EXPECT_EQ(ibv_wr_complete(ex_), 0);

  expect_received(1, 100);
  expect_received(2, 0);
  expect_done(10, IBV_WC_RDMA_WRITE);
  expect_done(11, IBV_WC_SEND);
  expect_done(12, IBV_WC_SEND);
  expect_done(13, IBV_WC_RDMA_READ);
  EXPECT_EQ(std::memcmp(&theirs_[0], &ours_[0], 100), 0);
  EXPECT_EQ(std::memcmp(&theirs_[100], &ours_[500], 50), 0);
  EXPECT_EQ(std::memcmp(&theirs_[1000], &ours_[100], 100), 0);
  EXPECT_EQ(std::memcmp(&ours_[40000], &theirs_[0], 150), 0);
}

TEST_F(WorkRequests, InlineOctetsAreTakenByTheSetter) {
  ASSERT_GE(granted_.max_inline_data, 512u);  // although none were asked for
  std::vector<char> octets(granted_.max_inline_data, 'i');
  receive(peer_, 1, 0, 4096);
  receive(peer_, 2, 4096, 4096);
  ibv_wr_start(ex_);
  next(1);
  ibv_wr_send(ex_);
  ibv_wr_set_inline_data(ex_, octets.data(), octets.size());
  // More pieces than the queue pair has SGEs, some of them empty.
  std::vector<ibv_data_buf> pieces;
  for (size_t i = 0; i < 100; ++i) pieces.push_back({&octets[i], i % 3});
  next(2);
  ibv_wr_send(ex_);
  ibv_wr_set_inline_data_list(ex_, pieces.size(), pieces.data());
  std::fill(octets.begin(), octets.end(), 'x');  // ours again
  EXPECT_EQ(ibv_wr_complete(ex_), 0);
  expect_received(1, granted_.max_inline_data);
  expect_received(2, 99);
  for (size_t i = 0; i < octets.size(); ++i) ASSERT_EQ(theirs_[i], 'i');
  for (size_t i = 0; i < 99; ++i) ASSERT_EQ(theirs_[4096 + i], 'i');
}

TEST_F(WorkRequests, AFailedBatchPostsNothing) {
  std::vector<char> much(granted_.max_inline_data + 1);
  const ibv_sge five[5] = {};
  const ibv_data_buf lists[] = {{much.data(), much.size() / 2}, {much.data(), much.size()}};
  const struct {
    const char* what;
    std::function<void()> mistake;
    int error;
  } mistakes[] = {
      {"too many SGEs", [&] { ibv_wr_send(ex_), ibv_wr_set_sge_list(ex_, 5, five); }, EINVAL},
      {"too much inline",
       [&] { ibv_wr_send(ex_), ibv_wr_set_inline_data(ex_, much.data(), much.size()); }, EINVAL},
      {"too much in a list", [&] { ibv_wr_send(ex_), ibv_wr_set_inline_data_list(ex_, 2, lists); },
       EINVAL},
      {"a length beyond 32 bits",
       [&] { ibv_wr_send(ex_), ibv_wr_set_inline_data(ex_, much.data(), (size_t{1} << 32) + 4); },
       EINVAL},
      {"an inline Read",
       [&] {
         ibv_wr_rdma_read(ex_, peer_mr_->rkey, their_address(0)),
             ibv_wr_set_inline_data(ex_, much.data(), 4);
       },
       EINVAL},
      {"a setter with nothing to set", [&] { ibv_wr_set_sge(ex_, mr_->lkey, our_address(0), 1); },
       EINVAL},
      {"a second setter",
       [&] {
         ibv_wr_send(ex_);
         ibv_wr_set_sge(ex_, mr_->lkey, our_address(0), 1);
         ibv_wr_set_sge(ex_, mr_->lkey, our_address(0), 1);
       },
       EINVAL},
      {"an immediate in a Send", [&] { ibv_wr_send_imm(ex_, 1); }, EINVAL},
      {"segmentation", [&] { ibv_wr_send_tso(ex_, much.data(), 4, 1000); }, EOPNOTSUPP},
      {"a UD address", [&] { ibv_wr_send(ex_), ibv_wr_set_ud_addr(ex_, nullptr, 1, 2); },
       EOPNOTSUPP},
      {"an XRC number", [&] { ibv_wr_send(ex_), ibv_wr_set_xrc_srqn(ex_, 1); }, EOPNOTSUPP},
      {"an atomic Write", [&] { ibv_wr_atomic_write(ex_, 0, 0, much.data()); }, EOPNOTSUPP},
  };
  for (const auto& each : mistakes) {
    SCOPED_TRACE(each.what);
    ibv_wr_start(ex_);
    next(1);
    ibv_wr_rdma_write(ex_, peer_mr_->rkey, their_address(0));
    ibv_wr_set_sge(ex_, mr_->lkey, our_address(1), 8);
    each.mistake();
    next(3);
    ibv_wr_send(ex_);  // after the mistake
    EXPECT_EQ(ibv_wr_complete(ex_), each.error);
  }
  expect_nothing_was_sent();
  EXPECT_EQ(theirs_[0], 0);
}

TEST_F(WorkRequests, AnAbortedBatchPostsNothing) {
  ibv_wr_start(ex_);
  next(1);
  ibv_wr_send(ex_);
  ibv_wr_set_sge(ex_, mr_->lkey, our_address(0), 8);
  ibv_wr_send(ex_);
  ibv_wr_abort(ex_);
  expect_nothing_was_sent();
}

TEST_F(WorkRequests, ABatchOverTheDepthPostsNothing) {
  ibv_wr_start(ex_);
  for (uint64_t i = 0; i <= granted_.max_send_wr; ++i) {
    next(i);
    ibv_wr_rdma_write(ex_, peer_mr_->rkey, their_address(0));
  }
  EXPECT_EQ(ibv_wr_complete(ex_), ENOMEM);
  ibv_wr_start(ex_);
  for (uint64_t i = 0; i < granted_.max_send_wr; ++i) {
    next(i);
    ibv_wr_rdma_write(ex_, peer_mr_->rkey, their_address(0));
  }
  EXPECT_EQ(ibv_wr_complete(ex_), 0);
  for (uint64_t i = 0; i < granted_.max_send_wr; ++i) expect_done(i, IBV_WC_RDMA_WRITE);
  expect_nothing_was_sent();
}

TEST_F(WorkRequests, BatchesAndListsTakeTurns) {
  for (uint64_t i = 0; i < 8; ++i) {
    if (i % 2) {
      EXPECT_EQ(write(qp_, i), 0);
    } else {
      ibv_wr_start(ex_);
      next(i);
      ibv_wr_rdma_write(ex_, peer_mr_->rkey, their_address(0));
      EXPECT_EQ(ibv_wr_complete(ex_), 0);
    }
  }
  for (uint64_t i = 0; i < 8; ++i) expect_done(i, IBV_WC_RDMA_WRITE);
}

// The manual: between start and complete "no other threads can enter", so every batch stays
// together.
TEST_F(WorkRequests, ThreadsDoNotMixTheirBatches) {
  constexpr uint64_t kThreads = 3, kBatches = 300, kEach = 4;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t n = 0; n < kBatches;) {
        ibv_wr_start(ex_);
        for (uint64_t i = 0; i < kEach; ++i) {
          next((t * kBatches + n) * kEach + i);
          ibv_wr_rdma_write(ex_, peer_mr_->rkey, their_address(0));
        }
        const int error = ibv_wr_complete(ex_);
        if (error == 0) {
          ++n;
        } else if (error != ENOMEM) {
          ADD_FAILURE() << error;
          return;
        }
      }
    });
  }
  std::vector<uint64_t> seen;
  while (seen.size() < kThreads * kBatches * kEach) {
    const ibv_wc wc = wait_for(cq_);
    if (wc.status != IBV_WC_SUCCESS) {
      ADD_FAILURE() << ibv_wc_status_str(wc.status);
      break;
    }
    seen.push_back(wc.wr_id);
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < seen.size(); i += kEach) {
    ASSERT_EQ(seen[i] % kEach, 0u);
    for (size_t j = 1; j < kEach; ++j) ASSERT_EQ(seen[i + j], seen[i] + j);
  }
}

// RFC 7306 through the same calls.
class Atomics : public Connected {};

TEST_F(Atomics, AndAWriteWithImmediate) {
  const Ends ends = connector_->connect(extended(kBasic | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                                 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                                 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM));
  ASSERT_TRUE(ends.a && ends.a->qp && ends.b);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(ends.a->qp);
  ASSERT_NE(ex, nullptr);
  const uint64_t before = 40;
  std::memcpy(theirs_ + 64, &before,
              sizeof before);  // before it is registered: the engine may use it from then on
  ibv_mr* region =
      ibv_reg_mr(pd_, theirs_, kSize, IBV_ACCESS_LOCAL_WRITE + IBV_ACCESS_REMOTE_ATOMIC);
  ASSERT_NE(region, nullptr);
  receive(ends.b->qp, 9, 1024, 0);
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_start(ex);
  ex->wr_id = 1;
  ibv_wr_atomic_fetch_add(ex, region->rkey, their_address(64), 2);
  ibv_wr_set_sge(ex, mr_->lkey, our_address(0), 8);
  ex->wr_id = 2;
  ibv_wr_atomic_cmp_swp(ex, region->rkey, their_address(64), 42, 7);
  ibv_wr_set_sge(ex, mr_->lkey, our_address(8), 8);
  ex->wr_id = 3;
  ibv_wr_rdma_write_imm(ex, peer_mr_->rkey, their_address(128), htonl(0x12345678));
  ibv_wr_set_sge(ex, mr_->lkey, our_address(256), 100);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  for (ibv_wc_opcode opcode : {IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP, IBV_WC_RDMA_WRITE}) {
    const ibv_wc wc = wait_for(cq_);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    EXPECT_EQ(wc.opcode, opcode);
  }
  const ibv_wc received = wait_for(peer_cq_);
  EXPECT_EQ(received.wr_id, 9u);
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(received.imm_data, htonl(0x12345678));
  uint64_t found[2], after;
  std::memcpy(found, ours_, sizeof found);
  std::memcpy(&after, theirs_ + 64, sizeof after);
  EXPECT_EQ(found[0], 40u);
  EXPECT_EQ(found[1], 42u);
  EXPECT_EQ(after, 7u);
  EXPECT_EQ(std::memcmp(theirs_ + 128, ours_ + 256, 100), 0);
  connector_.reset();
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

// The peer binds a window and gives its key away; we write through it and invalidate it with a
// Send.
class Invalidation : public Connected {};

TEST_F(Invalidation, BindSendWithInvalidateAndLocalInvalidate) {
  const MakeQp make = [this](rdma_cm_id* id, bool passive) {
    const ibv_qp_init_attr common = init_attr(passive);
    ibv_qp_init_attr_ex init{};
    std::memcpy(&init, &common, sizeof common);
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd_;
    init.send_ops_flags =
        kBasic | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV;
    ASSERT_EQ(rdma_create_qp_ex(id, &init), 0) << strerror(errno);
  };
  const Ends ends = connector_->connect(make);
  ASSERT_TRUE(ends.a && ends.b);
  ibv_qp_ex *ours = ibv_qp_to_qp_ex(ends.a->qp), *theirs = ibv_qp_to_qp_ex(ends.b->qp);
  ASSERT_TRUE(ours && theirs);
  ours->wr_flags = theirs->wr_flags = IBV_SEND_SIGNALED;
  ibv_mr* region = ibv_reg_mr(pd_, theirs_, kSize, IBV_ACCESS_LOCAL_WRITE + IBV_ACCESS_MW_BIND);
  ibv_mw* window = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  ASSERT_TRUE(region && window);
  EXPECT_EQ(write(ends.a->qp, 1), 0);  // the active end speaks first
  EXPECT_EQ(wait_for(cq_).wr_id, 1u);

  const ibv_mw_bind_info info{region, their_address(100), 50, IBV_ACCESS_REMOTE_WRITE};
  uint32_t rkey = window->rkey;
  for (bool remote : {true, false}) {
    SCOPED_TRACE(remote);
    rkey = ibv_inc_rkey(rkey);
    theirs->wr_id = 2;
    ibv_wr_start(theirs);
    ibv_wr_bind_mw(theirs, window, rkey, &info);
    ASSERT_EQ(ibv_wr_complete(theirs), 0);
    const ibv_wc bound = wait_for(peer_cq_);
    EXPECT_EQ(bound.status, IBV_WC_SUCCESS);
    EXPECT_EQ(bound.opcode, IBV_WC_BIND_MW);

    receive(ends.b->qp, 3, 0, 10);
    ibv_wr_start(ours);
    ours->wr_id = 4;
    ibv_wr_rdma_write(ours, rkey, their_address(100));
    ibv_wr_set_sge(ours, mr_->lkey, our_address(0), 50);
    ours->wr_id = 5;
    if (remote) {
      ibv_wr_send_inv(ours, rkey);
    } else {
      ibv_wr_send(ours);
    }
    ASSERT_EQ(ibv_wr_complete(ours), 0);
    EXPECT_EQ(wait_for(cq_).wr_id, 4u);
    EXPECT_EQ(wait_for(cq_).wr_id, 5u);
    const ibv_wc received = wait_for(peer_cq_);
    EXPECT_EQ(received.wr_id, 3u);
    EXPECT_EQ(received.status, IBV_WC_SUCCESS);
    EXPECT_EQ(received.wc_flags, remote ? unsigned{IBV_WC_WITH_INV} : 0u);
    if (remote) EXPECT_EQ(received.invalidated_rkey, rkey);
    EXPECT_EQ(std::memcmp(theirs_ + 100, ours_, 50), 0);
    if (remote) continue;
    theirs->wr_id = 6;
    ibv_wr_start(theirs);
    ibv_wr_local_inv(theirs, rkey);
    ASSERT_EQ(ibv_wr_complete(theirs), 0);
    const ibv_wc gone = wait_for(peer_cq_);
    EXPECT_EQ(gone.status, IBV_WC_SUCCESS);
    EXPECT_EQ(gone.opcode, IBV_WC_LOCAL_INV);
  }
  connector_.reset();
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

class Creation : public Connected {};

TEST_F(Creation, OnlyWhatIsSupportedMayBeAskedFor) {
  const ibv_qp_init_attr common = init_attr(false);
  ibv_qp_init_attr_ex init{};
  const auto reset = [&] {
    init = {};
    std::memcpy(&init, &common, sizeof common);
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd_;
    init.send_ops_flags = kBasic;
  };
  // Never on iWARP: RDMAP has no Send with immediate, RC no segmentation.
  for (uint64_t op :
       {uint64_t{IBV_QP_EX_WITH_SEND_WITH_IMM}, uint64_t{IBV_QP_EX_WITH_TSO}, uint64_t{1} << 40}) {
    reset();
    init.send_ops_flags |= op;
    EXPECT_NULL_ERRNO(ibv_create_qp_ex(context_, &init), EOPNOTSUPP);
  }
  for (uint32_t mask : {IBV_QP_INIT_ATTR_XRCD, IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
                        IBV_QP_INIT_ATTR_IND_TABLE, IBV_QP_INIT_ATTR_RX_HASH}) {
    reset();
    init.comp_mask |= mask;
    EXPECT_NULL_ERRNO(ibv_create_qp_ex(context_, &init), EOPNOTSUPP);
  }
  reset();
  init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
  init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  EXPECT_NULL_ERRNO(ibv_create_qp_ex(context_, &init), EOPNOTSUPP);
  reset();
  init.comp_mask &= ~static_cast<uint32_t>(IBV_QP_INIT_ATTR_PD);
  EXPECT_NULL_ERRNO(ibv_create_qp_ex(context_, &init), EINVAL);
  reset();
  init.qp_type = IBV_QPT_UD;
  EXPECT_NULL_ERRNO(ibv_create_qp_ex(context_, &init), EOPNOTSUPP);
  reset();
  init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
  ibv_qp* qp = ibv_create_qp_ex(context_, &init);
  ASSERT_NE(qp, nullptr);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
  ASSERT_NE(ex, nullptr);
  // Not connected: as ibv_post_send.
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

}  // namespace
}  // namespace uiw::provider_test
