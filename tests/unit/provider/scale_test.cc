// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Many connections in one process, and several devices and contexts.
#include <set>

#include "connected.h"
#include "support/descriptor_limit.h"

namespace uiw::provider_test {
namespace {

constexpr int kConnections = 2000;

class Scale : public Connected {};

TEST_F(Scale, ThousandsOfQueuePairs) {
  const rlim_t most = uiw::test::DescriptorLimit::most();
  if (most < 2 * kConnections + 100) GTEST_SKIP() << "ulimit -Hn is " << most;
  const uiw::test::DescriptorLimit enough(most);

  std::vector<Ends> all;
  for (int i = 0; i < kConnections && !HasFailure(); ++i) {
    all.push_back(connector_->connect([this](rdma_cm_id* id, bool passive) {
      ibv_qp_init_attr init = init_attr(passive);
      init.cap.max_send_wr = init.cap.max_recv_wr = 1;
      ASSERT_EQ(rdma_create_qp(id, pd_, &init), 0) << strerror(errno);
    }));
    receive(all.back().b->qp, static_cast<uint64_t>(i), static_cast<size_t>(i) * 8, 8);
  }
  ASSERT_FALSE(HasFailure());
  for (int i = 0; i < kConnections; ++i) {
    ibv_sge sge{our_address(static_cast<size_t>(i) * 8), 8, mr_->lkey};
    ibv_send_wr wr{}, *bad;
    wr.wr_id = static_cast<uint64_t>(i);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(ibv_post_send(all[static_cast<size_t>(i)].a->qp, &wr, &bad), 0);
  }
  std::set<uint64_t> sent, received;
  for (int i = 0; i < kConnections; ++i) {
    const ibv_wc out = wait_for(cq_), in = wait_for(peer_cq_);
    ASSERT_EQ(out.status, IBV_WC_SUCCESS);
    ASSERT_EQ(in.status, IBV_WC_SUCCESS);
    ASSERT_EQ(in.qp_num, all[in.wr_id].b->qp->qp_num);
    EXPECT_TRUE(sent.insert(out.wr_id).second);
    EXPECT_TRUE(received.insert(in.wr_id).second);
  }
  EXPECT_EQ(std::memcmp(ours_, theirs_, size_t{kConnections} * 8), 0);
  connector_.reset();
}

// Every device of the host at the same time, each with a connection over an address of its own.
TEST(Devices, AllAtOnce) {
  struct One {
    ibv_context* context;
    std::unique_ptr<Connector> connector;
    ibv_cq* cq = nullptr;
    ibv_pd* pd = nullptr;
    Ends ends{};
  };
  std::vector<One> all;
  ibv_device** list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  for (ibv_device** each = list; *each; ++each) {
    ibv_context* context = ibv_open_device(*each);
    ASSERT_NE(context, nullptr);
    union ibv_gid gid;
    ASSERT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
    const auto* address = reinterpret_cast<const in6_addr*>(gid.raw);
    if (IN6_IS_ADDR_V4MAPPED(address)) {
      all.push_back({context, std::make_unique<Connector>(address->s6_addr32[3])});
    } else {
      EXPECT_EQ(ibv_close_device(context), 0);
    }
  }
  ibv_free_device_list(list);
  std::set<std::string> names;
  for (One& one : all) {
    // librdmacm opens each device once more: a context of its own.
    ibv_context* own = one.connector->context();
    ASSERT_NE(own, nullptr);
    EXPECT_NE(own, one.context);
    EXPECT_STREQ(ibv_get_device_name(own->device), ibv_get_device_name(one.context->device));
    names.insert(ibv_get_device_name(own->device));
    one.cq = ibv_create_cq(own, 8, nullptr, nullptr, 0);
    one.pd = ibv_alloc_pd(own);
    ASSERT_TRUE(one.cq && one.pd);
    one.ends = one.connector->connect([&one](rdma_cm_id* id, bool) {
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = one.cq;
      init.cap = {.max_send_wr = 1,
                  .max_recv_wr = 1,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = 0};
      init.qp_type = IBV_QPT_RC;
      EXPECT_EQ(rdma_create_qp(id, one.pd, &init), 0);
    });
    ASSERT_TRUE(one.ends.a && one.ends.b);
    EXPECT_EQ(one.ends.a->verbs, one.ends.b->verbs);
  }
  EXPECT_EQ(names.size(), all.size());
  for (One& one : all) {
    ibv_recv_wr receive{}, *bad_receive;
    receive.wr_id = 2;
    ASSERT_EQ(ibv_post_recv(one.ends.b->qp, &receive, &bad_receive), 0);
    ibv_send_wr send{}, *bad;
    send.wr_id = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(ibv_post_send(one.ends.a->qp, &send, &bad), 0);
  }
  for (One& one : all) {
    EXPECT_EQ(wait_for(one.cq).wr_id + wait_for(one.cq).wr_id, 3u);
    one.connector.reset();
    EXPECT_EQ(ibv_destroy_cq(one.cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(one.pd), 0);
    EXPECT_EQ(ibv_close_device(one.context), 0);
  }
}

}  // namespace
}  // namespace uiw::provider_test
