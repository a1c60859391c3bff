// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <dirent.h>

#include <cerrno>
#include <cstring>

#include "device/device.h"
#include "support.h"
#include "verbs/context.h"

namespace uiw::verbs {
namespace {

using device::Limits;
using Context = test::OpenDevice;

int open_descriptors() {
  int count = 0;
  DIR* dir = opendir("/proc/self/fd");
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

TEST(Device, UnknownNamesAreNotOurs) {
  EXPECT_EQ(uiwarp_device_find("mlx5_0"), nullptr);
  EXPECT_EQ(uiwarp_device_find("uiw_"), nullptr);
  EXPECT_EQ(uiwarp_device_find(""), nullptr);
}

TEST(Device, OpeningAndClosingLeavesNoDescriptorBehind) {
  const uiwarp_device* device = uiwarp_device_find("uiw_lo");
  ASSERT_NE(device, nullptr);
  uiwarp_context* context;
  int async_fd;
  ASSERT_EQ(uiwarp_context_open(device, 0, &context, &async_fd), 0);  // first-time set-up
  uiwarp_context_close(context);
  close(async_fd);
  const int before = open_descriptors();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(uiwarp_context_open(device, 0, &context, &async_fd), 0);
    uiwarp_context_close(context);
    close(async_fd);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Context, DeviceAttributesAreTheLimits) {
  ibv_device_attr_ex attr;
  std::memset(&attr, 0xff, sizeof attr);
  ASSERT_EQ(uiwarp_query_device(context_, &attr, sizeof attr), 0);
  const ibv_device_attr& basic = attr.orig_attr;
  EXPECT_STREQ(basic.fw_ver, "0.1.0");
  EXPECT_NE(basic.node_guid, 0u);
  EXPECT_EQ(basic.sys_image_guid, basic.node_guid);
  EXPECT_EQ(basic.max_qp, static_cast<int>(Limits::kMaxQp));
  EXPECT_EQ(basic.max_qp_wr, static_cast<int>(Limits::kMaxQpWr));
  EXPECT_EQ(basic.max_sge, static_cast<int>(Limits::kMaxSge));
  EXPECT_EQ(basic.max_sge_rd, static_cast<int>(Limits::kMaxSge));
  EXPECT_EQ(basic.max_cqe, static_cast<int>(Limits::kMaxCqe));
  EXPECT_EQ(basic.max_qp_rd_atom, static_cast<int>(Limits::kMaxReads));
  EXPECT_EQ(basic.max_qp_init_rd_atom, static_cast<int>(Limits::kMaxReads));
  EXPECT_EQ(basic.max_res_rd_atom, static_cast<int>(Limits::kMaxReads * Limits::kMaxQp));
  EXPECT_EQ(basic.atomic_cap, IBV_ATOMIC_GLOB);
  EXPECT_EQ(basic.max_mw, static_cast<int>(Limits::kMaxMw));
  EXPECT_EQ(basic.max_ah, 0);
  EXPECT_EQ(basic.max_mcast_grp, 0);
  EXPECT_EQ(basic.device_cap_flags,
            static_cast<unsigned>(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                                  IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_SRQ_RESIZE |
                                  IBV_DEVICE_CURR_QP_STATE_MOD));
  EXPECT_EQ(attr.device_cap_flags_ex, basic.device_cap_flags);
  EXPECT_EQ(basic.phys_port_cnt, 1);
  EXPECT_EQ(attr.comp_mask, 0u);
  EXPECT_EQ(attr.odp_caps.general_caps, uint64_t{IBV_ODP_SUPPORT});
  const auto& odp = attr.odp_caps.per_transport_caps;
  EXPECT_EQ(odp.rc_odp_caps, 2u * IBV_ODP_SUPPORT_SRQ_RECV - 1);  // all there are
  EXPECT_EQ(odp.uc_odp_caps | odp.ud_odp_caps | attr.xrc_odp_caps, 0u);
  EXPECT_EQ(attr.completion_timestamp_mask, 0u);
}

TEST_F(Context, QueryDeviceWritesWhatTheCallerKnows) {
  struct {
    ibv_device_attr_ex attr;
    char newer[64];
  } room;
  std::memset(&room, 0xff, sizeof room);
  ASSERT_EQ(uiwarp_query_device(context_, &room.attr, sizeof(ibv_device_attr)), 0);
  EXPECT_EQ(room.attr.orig_attr.phys_port_cnt, 1);
  EXPECT_EQ(room.attr.comp_mask, ~0u);  // the old call's caller has no such member
  ASSERT_EQ(uiwarp_query_device(context_, &room.attr, sizeof room), 0);
  for (char c : room.newer) EXPECT_EQ(c, 0);
}

TEST_F(Context, PortOneIsActive) {
  ibv_port_attr attr;
  std::memset(&attr, 0xff, sizeof attr);
  EXPECT_EQ(uiwarp_query_port(context_, 0, &attr), EINVAL);
  EXPECT_EQ(uiwarp_query_port(context_, 2, &attr), EINVAL);
  ASSERT_EQ(uiwarp_query_port(context_, 1, &attr), 0);
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(attr.lid, 0);
  EXPECT_EQ(attr.max_msg_sz, 1u << 31);
  EXPECT_EQ(attr.pkey_tbl_len, 1);
  EXPECT_GE(attr.gid_tbl_len, 1);
  EXPECT_EQ(attr.phys_state, 5);
  const uint32_t mtu = device::state_of(*device::find_by_name("uiw_lo")).mtu;
  EXPECT_EQ(attr.max_mtu, attr.active_mtu);
  EXPECT_LE(attr.active_mtu, IBV_MTU_4096);
  EXPECT_LE(128u << attr.active_mtu, std::max(mtu, 256u));
  if (attr.active_mtu < IBV_MTU_4096) {
    EXPECT_GT(256u << attr.active_mtu, mtu);
  }
}

// Each address has a GID of each type.
TEST_F(Context, APortIsThatOfItsFace) {
  ibv_port_attr iwarp, roce;
  context_->face = &device::face(core::Face::kIwarp);
  ASSERT_EQ(uiwarp_query_port(context_, 1, &iwarp), 0);
  context_->face = &device::face(core::Face::kRoce);
  ASSERT_EQ(uiwarp_query_port(context_, 1, &roce), 0);
  EXPECT_EQ(roce.gid_tbl_len, 2 * iwarp.gid_tbl_len);
  EXPECT_EQ(iwarp.port_cap_flags, uint32_t{IBV_PORT_CM_SUP});
  EXPECT_EQ(roce.port_cap_flags, uint32_t{IBV_PORT_CM_SUP} | IBV_PORT_IP_BASED_GIDS);
  EXPECT_EQ(iwarp.flags, 0);
  EXPECT_EQ(roce.flags, IBV_QPF_GRH_REQUIRED);
}

// The same atomics: RoCE adapters promise less, and programs look for just that.
TEST_F(Context, AtomicsAreCalledAsItsFaceDoes) {
  ibv_device_attr_ex attr;
  context_->face = &device::face(core::Face::kRoce);
  ASSERT_EQ(uiwarp_query_device(context_, &attr, sizeof attr), 0);
  EXPECT_EQ(attr.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
}

TEST_F(Context, WhatHappensToTheInterfaceIsAnEventOfItsDeviceAlone) {
  using device::Change;
  const device::Device& lo = *device::find_by_name("uiw_lo");
  const device::Device other;
  for (Change change : {Change::kPortDown, Change::kPortActive, Change::kGids, Change::kGone}) {
    context_->device_changed(other, change);
  }
  EXPECT_TRUE(test::read_all<EventRecord>(async_fd_).empty());
  const std::pair<Change, ibv_event_type> cases[] = {
      {Change::kPortDown, IBV_EVENT_PORT_ERR},
      {Change::kPortActive, IBV_EVENT_PORT_ACTIVE},
      {Change::kGids, IBV_EVENT_GID_CHANGE},
      {Change::kGone, IBV_EVENT_DEVICE_FATAL},
  };
  for (auto [change, type] : cases) {
    context_->device_changed(lo, change);
    const auto events = test::read_all<EventRecord>(async_fd_);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].type, static_cast<uint32_t>(type));
    EXPECT_EQ(events[0].element, change == Change::kGone ? 0u : 1u);  // the port
  }
}

TEST(Device, OneThatIsNotThereCannotBeOpened) {
  uiwarp_context* context = nullptr;
  int async_fd = -1;
  EXPECT_EQ(uiwarp_context_open(nullptr, 0, &context, &async_fd), ENODEV);
}

TEST_F(Context, ProtectionDomainsEndAtTheLimit) {
  std::vector<uiwarp_pd*> pds;
  uiwarp_pd* pd = nullptr;
  while (pds.size() < Limits::kMaxPd - 1) {  // the fixture has one
    ASSERT_EQ(uiwarp_pd_alloc(context_, &pd), 0);
    pds.push_back(pd);
  }
  EXPECT_EQ(uiwarp_pd_alloc(context_, &pd), ENOMEM);
  EXPECT_EQ(uiwarp_pd_dealloc(pds.back()), 0);
  EXPECT_EQ(uiwarp_pd_alloc(context_, &pds.back()), 0);
  for (uiwarp_pd* each : pds) EXPECT_EQ(uiwarp_pd_dealloc(each), 0);
}

}  // namespace
}  // namespace uiw::verbs
