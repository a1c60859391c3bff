// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program sees that runs with UIWARP_FACE=roce, as this one does.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/ip.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

namespace uiw::provider_test {
namespace {

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, gid.raw, text, sizeof text);
}

class Roce : public Verbs {
 protected:
  // 127.0.0.1 to itself.
  ibv_ah_attr attr(uint8_t sgid_index = 0) const {
    ibv_ah_attr made{};
    made.is_global = 1;
    made.port_num = 1;
    made.grh.sgid_index = sgid_index;
    EXPECT_EQ(ibv_query_gid(context_, 1, sgid_index, &made.grh.dgid), 0);
    return made;
  }
  static ibv_qp_state state_of(ibv_qp* qp) {
    ibv_qp_attr found{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp, &found, IBV_QP_STATE, &init), 0);
    return found.qp_state;
  }
};

TEST_F(Roce, IsAChannelAdapter) {
  EXPECT_EQ(context_->device->node_type, IBV_NODE_CA);
  EXPECT_EQ(context_->device->transport_type, IBV_TRANSPORT_IB);
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_TRUE(port.port_cap_flags & IBV_PORT_IP_BASED_GIDS);
  EXPECT_TRUE(port.flags & IBV_QPF_GRH_REQUIRED);
}

// As from adapters that pin pages: one of no bytes has a page unless it lies between two.
TEST_F(Roce, ARegionOfNoBytesHasToLieInAPage) {
  alignas(4096) static char page[4096];
  ibv_mr* const within = ibv_reg_mr(pd_, page + 1, 0, int{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_NE(within, nullptr);
  EXPECT_EQ(within->length, 0u);
  EXPECT_EQ(ibv_dereg_mr(within), 0);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd_, page, 0, int{IBV_ACCESS_LOCAL_WRITE}), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd_, reinterpret_cast<void*>(1), 0, int{IBV_ACCESS_LOCAL_WRITE}), nullptr);
  EXPECT_EQ(errno, EFAULT);
}

// All ways to ask agree, and IPv4 comes first.
TEST_F(Roce, EachAddressHasAGidOfBothTypes) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  ASSERT_GE(port.gid_tbl_len, 2);
  EXPECT_EQ(port.gid_tbl_len % 2, 0);
  const size_t count = static_cast<size_t>(port.gid_tbl_len);
  std::vector<ibv_gid_entry> table(count + 1);
  ASSERT_EQ(ibv_query_gid_table(context_, table.data(), table.size(), 0), port.gid_tbl_len);
  for (uint32_t i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    ibv_gid gid;
    ASSERT_EQ(ibv_query_gid(context_, 1, static_cast<int>(i), &gid), 0);
    EXPECT_EQ(text_of(gid), text_of(table[i & ~1u].gid));
    if (i < 2) EXPECT_EQ(text_of(gid), "::ffff:127.0.0.1");
    ibv_gid_entry entry{};
    ASSERT_EQ(ibv_query_gid_ex(context_, 1, i, &entry, 0), 0);
    for (const ibv_gid_entry& each : {entry, table[i]}) {
      EXPECT_EQ(text_of(each.gid), text_of(gid));
      EXPECT_EQ(each.gid_index, i);
      EXPECT_EQ(each.gid_type,
                static_cast<uint32_t>(i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1));
      EXPECT_EQ(each.ndev_ifindex, if_nametoindex("lo"));
    }
  }
  ibv_gid_entry behind{};
  EXPECT_NE(ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(count), &behind, 0), 0);
}

TEST_F(Roce, AddressHandlesAreMadeAndRefused) {
  for (uint8_t index : {0, 1}) {
    ibv_ah_attr good = attr(index);
    ibv_ah* ah = ibv_create_ah(pd_, &good);
    ASSERT_NE(ah, nullptr);
    EXPECT_EQ(ah->context, context_);
    EXPECT_EQ(ah->pd, pd_);
    errno = 0;
    EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  }
  ibv_ah_attr bad = attr();
  bad.is_global = 0;
  EXPECT_NULL_ERRNO(ibv_create_ah(pd_, &bad), EINVAL);
  bad = attr();
  bad.grh.sgid_index = 99;
  EXPECT_NULL_ERRNO(ibv_create_ah(pd_, &bad), EINVAL);
  bad = attr();
  bad.port_num = 2;
  EXPECT_NULL_ERRNO(ibv_create_ah(pd_, &bad), EINVAL);
}

// In front of a datagram over IPv4 its header lies in the last 20 bytes of 40.
TEST_F(Roce, AddressHandlesForAnswersOverIpv4) {
  alignas(8) char header[sizeof(ibv_grh)] = {};
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.tos = 0x28;
  ip.ttl = 17;
  ip.protocol = IPPROTO_UDP;
  inet_pton(AF_INET, "127.1.2.3", &ip.saddr);
  inet_pton(AF_INET, "127.0.0.1", &ip.daddr);
  std::memcpy(header + sizeof header - sizeof ip, &ip, sizeof ip);
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_ah_attr answer{};
  auto* const grh = reinterpret_cast<ibv_grh*>(header);
  ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, grh, &answer), 0);
  EXPECT_EQ(text_of(answer.grh.dgid), "::ffff:127.1.2.3");
  EXPECT_EQ(answer.grh.sgid_index, 1);  // RoCE v2
  EXPECT_EQ(answer.grh.traffic_class, 0x28);
  ibv_ah* ah = ibv_create_ah_from_wc(pd_, &wc, grh, 1);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  wc.wc_flags = 0;  // and nobody knows where it came from
  EXPECT_NULL_ERRNO(ibv_create_ah_from_wc(pd_, &wc, grh, 1), EINVAL);
}

TEST_F(Roce, AddressHandlesForAnswersOverIpv6) {
  for (const auto& [protocol, type] :
       {std::pair{0x1b, IBV_GID_TYPE_ROCE_V1}, std::pair{IPPROTO_UDP + 0, IBV_GID_TYPE_ROCE_V2}}) {
    ibv_grh grh{};
    grh.version_tclass_flow = htobe32(6u << 28 | 0x28u << 20);
    grh.next_hdr = static_cast<uint8_t>(protocol);
    grh.hop_limit = 17;
    inet_pton(AF_INET6, "::1", grh.sgid.raw);
    grh.dgid = grh.sgid;
    ibv_wc wc{};
    wc.wc_flags = IBV_WC_GRH;
    ibv_ah_attr answer{};
    ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, &grh, &answer), 0);
    EXPECT_EQ(text_of(answer.grh.dgid), "::1");
    EXPECT_EQ(answer.grh.traffic_class, 0x28);
    ibv_gid_entry entry{};
    ASSERT_EQ(ibv_query_gid_ex(context_, 1, answer.grh.sgid_index, &entry, 0), 0);
    EXPECT_EQ(text_of(entry.gid), "::1");
    EXPECT_EQ(entry.gid_type, static_cast<uint32_t>(type));
    ibv_ah* ah = ibv_create_ah_from_wc(pd_, &wc, &grh, 1);
    ASSERT_NE(ah, nullptr);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  }
}

TEST_F(Roce, AQueuePairBeginsInResetAndRemembersItsGid) {
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(cq);
  ibv_qp_attr wanted{};
  EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
  EXPECT_EQ(post_recv(qp, 1), EINVAL);
  wanted.qp_state = IBV_QPS_INIT;
  wanted.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &wanted,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  wanted.qp_state = IBV_QPS_RTR;
  wanted.ah_attr = attr(1);
  wanted.dest_qp_num = qp->qp_num;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  wanted.ah_attr.grh.sgid_index = 99;
  EXPECT_EQ(ibv_modify_qp(qp, &wanted, mask), EINVAL);
  wanted.ah_attr.grh.sgid_index = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &wanted, mask), 0);
  EXPECT_EQ(state_of(qp), IBV_QPS_RTR);
  ibv_qp_attr found{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp, &found, IBV_QP_AV, &init), 0);
  EXPECT_EQ(found.ah_attr.is_global, 1);
  EXPECT_EQ(found.ah_attr.grh.sgid_index, 1);
  EXPECT_EQ(text_of(found.ah_attr.grh.dgid), "::ffff:127.0.0.1");
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Roce, AStateThatIsNoneIsInvalid) {
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    ibv_qp_init_attr init = qp_attr(cq);
    init.qp_type = type;
    ibv_qp* qp = ibv_create_qp(pd_, &init);
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr attr{};
    const uint32_t none = 77;
    std::memcpy(&attr.qp_state, &none, sizeof none);
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL) << type;
    std::memcpy(&attr.cur_qp_state, &none, sizeof none);
    attr.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL) << type;
    EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Roce, OtherQueuePairsThanRcUcAndUdAreNotThere) {
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  for (ibv_qp_type type : {IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET}) {
    ibv_qp_init_attr init = qp_attr(cq);
    init.qp_type = type;
    EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &init), EOPNOTSUPP);
  }
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace uiw::provider_test
