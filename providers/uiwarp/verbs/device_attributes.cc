// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The answers of ibv_query_device(_ex) and ibv_query_port. Every number is a limit that a test
// reaches; zero means "not supported".
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/be.h"
#include "datagram/groups.h"
#include "device/device.h"
#include "device/gid_table.h"
#include "device/path_mtu.h"
#include "device/rate.h"
#include "verbs/context.h"

using namespace uiw;
using device::Limits;

namespace {

constexpr char kFirmware[] = "0.1.0";   // of this stack
constexpr uint32_t kVendor = 0x756977;  // "uiw"; no registered vendor
constexpr uint32_t kVendorPart = 1;

void fill(const device::Device& device, const device::Face& face, ibv_device_attr& attr) {
  std::snprintf(attr.fw_ver, sizeof attr.fw_ver, "%s", kFirmware);
  core::store_be64(&attr.node_guid, device.node_guid);
  attr.sys_image_guid = attr.node_guid;
  attr.max_mr_size = ~uint64_t{0};  // limited only by the address space
  attr.page_size_cap = ~uint64_t{0xfff};
  attr.vendor_id = kVendor;
  attr.vendor_part_id = kVendorPart;
  // Type 2 windows are tied to a queue pair of their own protection domain: that is type 2B.
  attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                          IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_SRQ_RESIZE |
                          IBV_DEVICE_CURR_QP_STATE_MOD;
  attr.max_qp = Limits::kMaxQp;
  attr.max_qp_wr = Limits::kMaxQpWr;
  attr.max_sge = Limits::kMaxSge;
  attr.max_sge_rd = Limits::kMaxSge;
  attr.max_cq = Limits::kMaxCq;
  attr.max_cqe = Limits::kMaxCqe;
  attr.max_mr = Limits::kMaxMr;
  attr.max_mw = Limits::kMaxMw;
  attr.max_pd = Limits::kMaxPd;
  attr.max_ah = face.address_handles ? Limits::kMaxAh : 0;
  attr.max_qp_rd_atom = Limits::kMaxReads;
  attr.max_res_rd_atom = Limits::kMaxReads * Limits::kMaxQp;
  attr.max_qp_init_rd_atom = Limits::kMaxReads;
  attr.atomic_cap = face.atomics;
  attr.max_srq = Limits::kMaxSrq;
  attr.max_srq_wr = Limits::kMaxSrqWr;
  attr.max_srq_sge = Limits::kMaxSge;
  if (face.has(IBV_QPT_UD)) {
    attr.max_mcast_grp = datagram::kMostGroups;
    attr.max_mcast_qp_attach = datagram::kMostAttached;
    attr.max_total_mcast_qp_attach = datagram::kMostGroups * datagram::kMostAttached;
  }
  attr.max_pkeys = 1;
  attr.phys_port_cnt = 1;
}

}  // namespace

int uiwarp_query_device(uiwarp_context* context, ibv_device_attr_ex* attr, size_t size) {
  ibv_device_attr_ex all;
  std::memset(&all, 0, sizeof all);
  fill(*context->device, *context->face, all.orig_attr);
  // On-demand paging, as nothing is pinned. But not implicit ODP: with a region of the whole
  // address space a peer could end the process by one access to unmapped memory.
  all.odp_caps.general_caps = IBV_ODP_SUPPORT;
  all.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
                                                IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                                                IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
  all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
  std::memset(attr, 0, size);  // fields that only a newer caller knows
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

int uiwarp_query_port(uiwarp_context* context, uint8_t port, ibv_port_attr* attr) {
  if (port != 1)
    return core::refuse(context->told.port, EINVAL,
                        "ibv_query_port: port_num is %u, the device has port 1", port);
  std::memset(attr, 0, sizeof *attr);
  const device::State now = device::state_of(*context->device);
  attr->state = now.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->max_mtu = device::largest_ib_mtu(now.mtu);
  attr->active_mtu = attr->max_mtu;
  attr->gid_tbl_len = static_cast<int>(device::gid_count(now, *context->face));
  attr->port_cap_flags = context->face->port_capabilities;
  attr->flags = context->face->port_flags;
  attr->max_msg_sz = Limits::kMaxMessage;
  attr->pkey_tbl_len = 1;
  attr->max_vl_num = 1;
  const device::Rate rate = device::rate_of(now);
  attr->active_width = rate.width;
  attr->active_speed = rate.speed;
  attr->phys_state = now.active ? 5 : 3;  // LinkUp, Disabled: as siw
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
