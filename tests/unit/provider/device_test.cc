// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <net/if.h>

#include <cstdlib>
#include <vector>

#include "support.h"

namespace uiw::provider_test {
namespace {

using Device = Verbs;

TEST_F(Device, IsAnRnic) {
  EXPECT_EQ(context_->device->node_type, IBV_NODE_RNIC);
  EXPECT_EQ(context_->device->transport_type, IBV_TRANSPORT_IWARP);
  EXPECT_NE(ibv_get_device_guid(context_->device), 0u);
  EXPECT_GE(context_->num_comp_vectors, 1);
  if (const char* wanted = getenv("UIWARP_ENGINES"))
    EXPECT_EQ(context_->num_comp_vectors, atoi(wanted));
}

TEST_F(Device, TheListIsStable) {
  int first_count = 0, second_count = 0;
  ibv_device** first = ibv_get_device_list(&first_count);
  ibv_device** second = ibv_get_device_list(&second_count);
  ASSERT_EQ(first_count, second_count);
  for (int i = 0; i < first_count; ++i) EXPECT_EQ(first[i], second[i]);
  ibv_free_device_list(first);
  ibv_free_device_list(second);
}

TEST_F(Device, OpensMoreThanOnce) {
  ibv_context* again = ibv_open_device(context_->device);
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again->async_fd, context_->async_fd);
  ibv_pd* pd = ibv_alloc_pd(again);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_close_device(again), 0);
}

TEST_F(Device, Queries) {
  ibv_device_attr attr;
  ASSERT_EQ(ibv_query_device(context_, &attr), 0);
  EXPECT_STREQ(attr.fw_ver, "0.1.0");
  EXPECT_EQ(attr.node_guid, ibv_get_device_guid(context_->device));
  EXPECT_EQ(attr.phys_port_cnt, 1);
  ibv_device_attr_ex extended;
  std::memset(&extended, 0xff, sizeof extended);
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &extended), 0);
  EXPECT_EQ(std::memcmp(&extended.orig_attr, &attr, sizeof attr), 0);
  EXPECT_EQ(extended.tso_caps.max_tso, 0u);
  ibv_query_device_ex_input input{.comp_mask = 1};
  EXPECT_EQ(ibv_query_device_ex(context_, &input, &extended), EINVAL);
}

TEST_F(Device, Ports) {
  ibv_port_attr port;
  EXPECT_NE(ibv_query_port(context_, 0, &port), 0);
  EXPECT_NE(ibv_query_port(context_, 2, &port), 0);
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  union ibv_gid gid;
  for (int i = 0; i < port.gid_tbl_len; ++i) EXPECT_EQ(ibv_query_gid(context_, 1, i, &gid), 0);
  EXPECT_NE(ibv_query_gid(context_, 1, port.gid_tbl_len, &gid), 0);
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &gid), 0);
  EXPECT_NE(gid.global.interface_id, 0u);
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context_, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, pkey), 0);
  EXPECT_NE(ibv_query_pkey(context_, 1, 1, &pkey), 0);
}

// All ways to ask for a GID agree.
TEST_F(Device, Gids) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  ASSERT_GT(port.gid_tbl_len, 0);
  std::vector<ibv_gid_entry> table(static_cast<size_t>(port.gid_tbl_len) + 4);
  ASSERT_EQ(ibv_query_gid_table(context_, table.data(), table.size(), 0), port.gid_tbl_len);
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    union ibv_gid gid;
    ASSERT_EQ(ibv_query_gid(context_, 1, i, &gid), 0);
    ibv_gid_entry entry{};
    ASSERT_EQ(ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(i), &entry, 0), 0);
    for (const ibv_gid_entry& each : {entry, table[static_cast<size_t>(i)]}) {
      EXPECT_EQ(std::memcmp(&each.gid, &gid, sizeof gid), 0);
      EXPECT_EQ(each.gid_index, static_cast<uint32_t>(i));
      EXPECT_EQ(each.port_num, 1u);
      EXPECT_EQ(each.ndev_ifindex, if_nametoindex("lo"));
    }
  }
  ibv_gid_entry entry{};
  EXPECT_NE(ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(port.gid_tbl_len), &entry, 0), 0);
}

}  // namespace
}  // namespace uiw::provider_test
