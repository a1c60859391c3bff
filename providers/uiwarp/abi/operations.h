/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The operations of an opened device, sorted by name, as in libibverbs' table of them. One per line, with
 * the first rdma-core release that has it there (34: all releases that uiwarp knows): the table of a
 * release is this list without what is newer. buildlib/RdmaCoreAbi.cmake reads the list from here and
 * compares it with the installed libibverbs.a.
 *
 *   OURS(release, name, result, (arguments))	uiwarp implements it
 *   OTHER(release, name)			left to libibverbs, which then says EOPNOTSUPP
 */
#ifndef UIWARP_ABI_OPERATIONS_H
#define UIWARP_ABI_OPERATIONS_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct verbs_mr;

#define UIWARP_OPERATIONS(OURS, OTHER) \
	OURS(34, advise_mr, int, (struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t, struct ibv_sge *, uint32_t)) \
	OTHER(64, alloc_buf) \
	OTHER(34, alloc_dm) \
	OTHER(59, alloc_dmah) \
	OURS(34, alloc_mw, struct ibv_mw *, (struct ibv_pd *, enum ibv_mw_type)) \
	OTHER(34, alloc_null_mr) \
	OURS(34, alloc_parent_domain, struct ibv_pd *, (struct ibv_context *, struct ibv_parent_domain_init_attr *)) \
	OURS(34, alloc_pd, struct ibv_pd *, (struct ibv_context *)) \
	OURS(34, alloc_td, struct ibv_td *, (struct ibv_context *, struct ibv_td_init_attr *)) \
	OURS(34, async_event, void, (struct ibv_context *, struct ibv_async_event *)) \
	OTHER(34, attach_counters_point_flow) \
	OURS(34, attach_mcast, int, (struct ibv_qp *, const union ibv_gid *, uint16_t)) \
	OURS(34, bind_mw, int, (struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *)) \
	OTHER(34, close_xrcd) \
	OURS(34, cq_event, void, (struct ibv_cq *)) \
	OURS(34, create_ah, struct ibv_ah *, (struct ibv_pd *, struct ibv_ah_attr *)) \
	OTHER(34, create_counters) \
	OURS(34, create_cq, struct ibv_cq *, (struct ibv_context *, int, struct ibv_comp_channel *, int)) \
	OURS(34, create_cq_ex, struct ibv_cq_ex *, (struct ibv_context *, struct ibv_cq_init_attr_ex *)) \
	OTHER(34, create_flow) \
	OTHER(34, create_flow_action_esp) \
	OURS(34, create_qp, struct ibv_qp *, (struct ibv_pd *, struct ibv_qp_init_attr *)) \
	OURS(34, create_qp_ex, struct ibv_qp *, (struct ibv_context *, struct ibv_qp_init_attr_ex *)) \
	OTHER(34, create_rwq_ind_table) \
	OURS(34, create_srq, struct ibv_srq *, (struct ibv_pd *, struct ibv_srq_init_attr *)) \
	OTHER(34, create_srq_ex) \
	OTHER(34, create_wq) \
	OTHER(59, dealloc_dmah) \
	OURS(34, dealloc_mw, int, (struct ibv_mw *)) \
	OURS(34, dealloc_pd, int, (struct ibv_pd *)) \
	OURS(34, dealloc_td, int, (struct ibv_td *)) \
	OURS(34, dereg_mr, int, (struct verbs_mr *)) \
	OURS(34, destroy_ah, int, (struct ibv_ah *)) \
	OTHER(34, destroy_counters) \
	OURS(34, destroy_cq, int, (struct ibv_cq *)) \
	OTHER(34, destroy_flow) \
	OTHER(34, destroy_flow_action) \
	OURS(34, destroy_qp, int, (struct ibv_qp *)) \
	OTHER(34, destroy_rwq_ind_table) \
	OURS(34, destroy_srq, int, (struct ibv_srq *)) \
	OTHER(34, destroy_wq) \
	OURS(34, detach_mcast, int, (struct ibv_qp *, const union ibv_gid *, uint16_t)) \
	OTHER(62, dm_export_dmabuf_fd) \
	OTHER(64, free_buf) \
	OURS(34, free_context, void, (struct ibv_context *)) \
	OTHER(34, free_dm) \
	OTHER(34, get_srq_num) \
	OTHER(34, import_dm) \
	OURS(34, import_mr, struct ibv_mr *, (struct ibv_pd *, uint32_t)) \
	OURS(34, import_pd, struct ibv_pd *, (struct ibv_context *, uint32_t)) \
	OTHER(34, modify_cq) \
	OTHER(34, modify_flow_action_esp) \
	OURS(34, modify_qp, int, (struct ibv_qp *, struct ibv_qp_attr *, int)) \
	OTHER(34, modify_qp_rate_limit) \
	OURS(34, modify_srq, int, (struct ibv_srq *, struct ibv_srq_attr *, int)) \
	OTHER(34, modify_wq) \
	OTHER(34, open_qp) \
	OTHER(34, open_xrcd) \
	OURS(34, poll_cq, int, (struct ibv_cq *, int, struct ibv_wc *)) \
	OURS(34, post_recv, int, (struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **)) \
	OURS(34, post_send, int, (struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **)) \
	OTHER(34, post_srq_ops) \
	OURS(34, post_srq_recv, int, (struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **)) \
	OURS(34, query_device_ex, int, (struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *, size_t)) \
	OTHER(34, query_ece) \
	OURS(34, query_port, int, (struct ibv_context *, uint8_t, struct ibv_port_attr *)) \
	OTHER(62, query_port_speed) \
	OURS(34, query_qp, int, (struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *)) \
	OTHER(34, query_qp_data_in_order) \
	OTHER(34, query_rt_values) \
	OURS(34, query_srq, int, (struct ibv_srq *, struct ibv_srq_attr *)) \
	OTHER(34, read_counters) \
	OTHER(34, reg_dm_mr) \
	OTHER(34, reg_dmabuf_mr) \
	OURS(34, reg_mr, struct ibv_mr *, (struct ibv_pd *, void *, size_t, uint64_t, int)) \
	OTHER(59, reg_mr_ex) \
	OURS(34, req_notify_cq, int, (struct ibv_cq *, int)) \
	OURS(34, rereg_mr, int, (struct verbs_mr *, int, struct ibv_pd *, void *, size_t, int)) \
	OURS(34, resize_cq, int, (struct ibv_cq *, int)) \
	OTHER(34, set_ece) \
	OTHER(34, unimport_dm) \
	OURS(34, unimport_mr, void, (struct ibv_mr *)) \
	OURS(34, unimport_pd, void, (struct ibv_pd *))
/* An operation that uiwarp leaves to libibverbs. */
typedef void (*verbs_other_op)(void);

/* All of them. libibverbs gets those of its own table only (provider_operations()). */
struct verbs_all_ops {
#define OURS(since, name, result, arguments) result (*name) arguments;
#define OTHER(since, name) verbs_other_op name;
	UIWARP_OPERATIONS(OURS, OTHER)
#undef OURS
#undef OTHER
};

enum { UIWARP_OPERATIONS_MAX = sizeof(struct verbs_all_ops) / sizeof(verbs_other_op) };

#endif
