/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What libibverbs and a provider of private ABI 34 (rdma-core up to 56) share in memory, in our own
 * words: libibverbs-dev has no header for it. Names, order, sizes and offsets are facts of the
 * interface; buildlib/RdmaCoreAbi.cmake compares the operations below with those of the installed
 * libibverbs.a, and provider/probe.c asks the loaded library where it expects things.
 *
 * Fields that uiwarp neither reads nor writes are only space. Nothing here grows without a new
 * symbol version IBVERBS_PRIVATE_nn, with one exception: rdma-core 45 added a member to struct
 * ibv_qp_ex, which moved the flags behind it in a provider's queue pair from octet 352 to 360.
 */
#ifndef UIWARP_ABI_RDMAV34_H
#define UIWARP_ABI_RDMAV34_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A device as libibverbs found it below /sys/class/infiniband_verbs. */
struct verbs_sysfs_dev {
	void *list[2];
	void *provider_data;
	const void *match;
	unsigned int flags;
	char sysfs_name[64]; /* "uverbs0" */
	uint64_t sysfs_cdev;
	char ibdev_name[64]; /* "uiw_lo" */
	char ibdev_path[256];
	char modalias[512];
	uint64_t node_guid;
	uint32_t driver_id;
	uint32_t node_type;
	int ibdev_idx;
	uint32_t num_ports;
	uint32_t abi_ver;
	int64_t time_created[2];
};
static_assert(offsetof(struct verbs_sysfs_dev, ibdev_name) == 112, "private ABI 34");
static_assert(offsetof(struct verbs_sysfs_dev, node_guid) == 944, "private ABI 34");
static_assert(offsetof(struct verbs_sysfs_dev, ibdev_idx) == 960, "private ABI 34");
static_assert(sizeof(struct verbs_sysfs_dev) == 992, "private ABI 34");

/* One line of a table of devices that a provider knows by bus, name or driver number. */
struct verbs_match_ent {
	void *driver_data;
	uint64_t key;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind; /* 0 ends the table */
};
static_assert(sizeof(struct verbs_match_ent) == 24, "private ABI 34");

struct verbs_device_ops;

/* What a provider allocates, zeroed, per device. */
struct verbs_device {
	struct ibv_device device;
	const struct verbs_device_ops *ops;
	int refcount;
	void *list[2];
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};
static_assert(offsetof(struct verbs_device, ops) == 664, "private ABI 34");
static_assert(offsetof(struct verbs_device, sysfs) == 696, "private ABI 34");
static_assert(sizeof(struct verbs_device) == 712, "private ABI 34");

/* A provider, as it registers itself. */
struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version; /* of the device's abi_version file */
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table; /* never NULL */
	const void *static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs_dev);
	struct verbs_context *(*alloc_context)(struct ibv_device *device, int cmd_fd, void *private_data);
	struct verbs_context *(*import_context)(struct ibv_device *device, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs_dev);
	void (*uninit_device)(struct verbs_device *device);
};
static_assert(offsetof(struct verbs_device_ops, match_device) == 32, "private ABI 34");
static_assert(offsetof(struct verbs_device_ops, uninit_device) == 64, "private ABI 34");
static_assert(sizeof(struct verbs_device_ops) == 72, "private ABI 34");

/* Behind the public structures libibverbs keeps a few fields of its own. */
struct verbs_mr {
	struct ibv_mr mr;
	uint32_t mr_type; /* 0: plain memory */
	int access;
};
static_assert(offsetof(struct verbs_mr, mr_type) == 48, "private ABI 34");
static_assert(sizeof(struct verbs_mr) == 56, "private ABI 34");

enum {
	UIWARP_VERBS_CQ_SIZE = 288,
	UIWARP_VERBS_SRQ_SIZE = 160,
	/* struct verbs_qp: the larger of both layouts */
	UIWARP_VERBS_QP_SIZE = 376,
	UIWARP_VERBS_QP_MASK_TO_44 = 352, /* where its comp_mask lies */
	UIWARP_VERBS_QP_MASK_FROM_45 = 360,
	UIWARP_VERBS_QP_EX = 1 << 1, /* in comp_mask: the ibv_wr_*() calls work */
};
static_assert(sizeof(struct ibv_qp) <= UIWARP_VERBS_QP_MASK_TO_44, "private ABI 34");
static_assert(sizeof(struct ibv_cq) <= UIWARP_VERBS_CQ_SIZE, "private ABI 34");
static_assert(sizeof(struct ibv_srq) <= UIWARP_VERBS_SRQ_SIZE, "private ABI 34");

static_assert(offsetof(struct verbs_context, context) == 320, "private ABI 34");
static_assert(sizeof(struct verbs_context) == 648, "private ABI 34");

/* An operation that uiwarp leaves to libibverbs, which then says EOPNOTSUPP. */
typedef void (*verbs_other_op)(void);

/*
 * The operations of an opened device, sorted by name. One per line: buildlib/RdmaCoreAbi.cmake reads
 * them from here.
 */
struct verbs_context_ops {
	verbs_other_op advise_mr;
	verbs_other_op alloc_dm;
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *, enum ibv_mw_type);
	verbs_other_op alloc_null_mr;
	verbs_other_op alloc_parent_domain;
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	verbs_other_op alloc_td;
	void (*async_event)(struct ibv_context *, struct ibv_async_event *);
	verbs_other_op attach_counters_point_flow;
	verbs_other_op attach_mcast;
	int (*bind_mw)(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
	verbs_other_op close_xrcd;
	void (*cq_event)(struct ibv_cq *);
	verbs_other_op create_ah;
	verbs_other_op create_counters;
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, struct ibv_comp_channel *, int);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *, struct ibv_cq_init_attr_ex *);
	verbs_other_op create_flow;
	verbs_other_op create_flow_action_esp;
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *, struct ibv_qp_init_attr_ex *);
	verbs_other_op create_rwq_ind_table;
	struct ibv_srq *(*create_srq)(struct ibv_pd *, struct ibv_srq_init_attr *);
	verbs_other_op create_srq_ex;
	verbs_other_op create_wq;
	int (*dealloc_mw)(struct ibv_mw *);
	int (*dealloc_pd)(struct ibv_pd *);
	verbs_other_op dealloc_td;
	int (*dereg_mr)(struct verbs_mr *);
	verbs_other_op destroy_ah;
	verbs_other_op destroy_counters;
	int (*destroy_cq)(struct ibv_cq *);
	verbs_other_op destroy_flow;
	verbs_other_op destroy_flow_action;
	int (*destroy_qp)(struct ibv_qp *);
	verbs_other_op destroy_rwq_ind_table;
	int (*destroy_srq)(struct ibv_srq *);
	verbs_other_op destroy_wq;
	verbs_other_op detach_mcast;
	void (*free_context)(struct ibv_context *);
	verbs_other_op free_dm;
	verbs_other_op get_srq_num;
	verbs_other_op import_dm;
	verbs_other_op import_mr;
	verbs_other_op import_pd;
	verbs_other_op modify_cq;
	verbs_other_op modify_flow_action_esp;
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	verbs_other_op modify_qp_rate_limit;
	int (*modify_srq)(struct ibv_srq *, struct ibv_srq_attr *, int);
	verbs_other_op modify_wq;
	verbs_other_op open_qp;
	verbs_other_op open_xrcd;
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
	int (*post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
	int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
	verbs_other_op post_srq_ops;
	int (*post_srq_recv)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **);
	int (*query_device_ex)(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *, size_t);
	verbs_other_op query_ece;
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
	int (*query_qp)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
	verbs_other_op query_qp_data_in_order;
	verbs_other_op query_rt_values;
	int (*query_srq)(struct ibv_srq *, struct ibv_srq_attr *);
	verbs_other_op read_counters;
	verbs_other_op reg_dm_mr;
	verbs_other_op reg_dmabuf_mr;
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, uint64_t, int);
	int (*req_notify_cq)(struct ibv_cq *, int);
	int (*rereg_mr)(struct verbs_mr *, int, struct ibv_pd *, void *, size_t, int);
	int (*resize_cq)(struct ibv_cq *, int);
	verbs_other_op set_ece;
	verbs_other_op unimport_dm;
	verbs_other_op unimport_mr;
	verbs_other_op unimport_pd;
};
static_assert(sizeof(struct verbs_context_ops) == 76 * sizeof(void *), "private ABI 34");

/* ---- functions of libibverbs, symbol version IBVERBS_PRIVATE_34 ---- */

/* Called while a provider is loaded. `ops` must stay. */
void verbs_register_driver_34(const struct verbs_device_ops *ops);
/*
 * Allocates `size` zeroed octets with a struct verbs_context at `offset`, set up but for the operations.
 * Owns cmd_fd from then on, also on failure (NULL, errno).
 */
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t size, void *offset,
				    uint32_t driver_id);
/* Overwrites the operations that are not NULL in `ops`. */
void verbs_set_ops(struct verbs_context *context, const struct verbs_context_ops *ops);
/* Undoes verbs_init; closes cmd_fd and async_fd. The memory stays the caller's, to be freed with free(). */
void verbs_uninit_context(struct verbs_context *context);

#endif
