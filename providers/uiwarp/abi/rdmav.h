/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What libibverbs and a provider share in memory, in our own words: libibverbs-dev has no header for it.
 * Names, order, sizes and offsets are facts of the interface; buildlib/RdmaCoreAbi.cmake compares the
 * operations (abi/operations.h) with those of the installed libibverbs.a, and provider/probe.c asks the
 * loaded library where it expects things.
 *
 * UIWARP_PABI is the number of that interface, which the build found in libibverbs as the symbol version
 * IBVERBS_PRIVATE_nn: the provider's file name and the function it registers with carry it. What uiwarp
 * shares with libibverbs differs from number to number in three places only, and twice without a new one:
 *
 *   private ABI	rdma-core	operations	ibv_context in verbs_context	flags in verbs_qp
 *   34			36 to 44	76		320				352
 *   34			45 to 56	76		320				360
 *   57			57, 58		76		320				360
 *   59			59 to 61	79		344				360
 *   59			62, 63		81		352				360
 *   64			64		83		368				360
 *
 * Fields that uiwarp neither reads nor writes are only space.
 */
#ifndef UIWARP_ABI_RDMAV_H
#define UIWARP_ABI_RDMAV_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/operations.h"

/*
 * Sizes and offsets are those of x86-64. Where a structure holds a mutex, another architecture's is larger by
 * what its pthread_mutex_t is larger: 8 bytes on arm64.
 */
enum { UIWARP_MUTEX_GROWTH = sizeof(pthread_mutex_t) - 40 };

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
static_assert(offsetof(struct verbs_sysfs_dev, ibdev_name) == 112, "private ABI");
static_assert(offsetof(struct verbs_sysfs_dev, node_guid) == 944, "private ABI");
static_assert(offsetof(struct verbs_sysfs_dev, ibdev_idx) == 960, "private ABI");
static_assert(sizeof(struct verbs_sysfs_dev) == 992, "private ABI");

/* One line of a table of devices that a provider knows by bus, name or driver number. */
struct verbs_match_ent {
	void *driver_data;
	uint64_t key;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind; /* 0 ends the table */
};
static_assert(sizeof(struct verbs_match_ent) == 24, "private ABI");

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
static_assert(offsetof(struct verbs_device, ops) == 664, "private ABI");
static_assert(offsetof(struct verbs_device, sysfs) == 696, "private ABI");
static_assert(sizeof(struct verbs_device) == 712, "private ABI");

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
static_assert(offsetof(struct verbs_device_ops, match_device) == 32, "private ABI");
static_assert(offsetof(struct verbs_device_ops, uninit_device) == 64, "private ABI");
static_assert(sizeof(struct verbs_device_ops) == 72, "private ABI");

/* Behind the public structures libibverbs keeps a few fields of its own. */
struct verbs_mr {
	struct ibv_mr mr;
	uint32_t mr_type; /* 0: plain memory; UIWARP_VERBS_MR_IMPORTED */
	int access;
};
static_assert(offsetof(struct verbs_mr, mr_type) == 48, "private ABI");
static_assert(sizeof(struct verbs_mr) == 56, "private ABI");

enum {
	UIWARP_VERBS_MR_IMPORTED = 2, /* ibv_rereg_mr() does not take it */
	UIWARP_VERBS_CQ_SIZE = 288 + UIWARP_MUTEX_GROWTH,
	UIWARP_VERBS_SRQ_SIZE = 160 + UIWARP_MUTEX_GROWTH,
	/* struct verbs_qp: the larger of both layouts */
	UIWARP_VERBS_QP_SIZE = 376 + UIWARP_MUTEX_GROWTH,
	UIWARP_VERBS_QP_MASK_TO_44 = 352 + UIWARP_MUTEX_GROWTH, /* where its comp_mask lies */
	UIWARP_VERBS_QP_MASK_FROM_45 = 360 + UIWARP_MUTEX_GROWTH,
	UIWARP_VERBS_QP_EX = 1 << 1, /* in comp_mask: the ibv_wr_*() calls work */
};
static_assert(sizeof(struct ibv_qp) <= UIWARP_VERBS_QP_MASK_TO_44, "private ABI");
static_assert(sizeof(struct ibv_cq) <= UIWARP_VERBS_CQ_SIZE, "private ABI");
static_assert(sizeof(struct ibv_srq) <= UIWARP_VERBS_SRQ_SIZE, "private ABI");

/*
 * struct verbs_context is in a public header, and grows at its top. Which of the two forms that private
 * ABI 59 has the header shows does not matter: the provider goes by the library that loads it.
 */
#if UIWARP_PABI == 34 || UIWARP_PABI == 57
static_assert(offsetof(struct verbs_context, context) == 320, "private ABI");
#elif UIWARP_PABI == 59
static_assert(offsetof(struct verbs_context, context) == 344 || offsetof(struct verbs_context, context) == 352,
	      "private ABI");
#elif UIWARP_PABI == 64
static_assert(offsetof(struct verbs_context, context) == 368, "private ABI");
#else
#error "UIWARP_PABI is no private ABI of rdma-core that uiwarp knows"
#endif
static_assert(sizeof(struct verbs_context) - offsetof(struct verbs_context, context) == 328 + UIWARP_MUTEX_GROWTH,
	      "private ABI");

/* ---- functions of libibverbs, symbol version IBVERBS_PRIVATE_nn ---- */

#define UIWARP_JOIN_(a, b) a##b
#define UIWARP_JOIN(a, b) UIWARP_JOIN_(a, b)
#define verbs_register_driver UIWARP_JOIN(verbs_register_driver_, UIWARP_PABI)

/* Called while a provider is loaded. `ops` must stay. */
void verbs_register_driver(const struct verbs_device_ops *ops);
/*
 * Allocates `size` zeroed octets with a struct verbs_context at `offset`, set up but for the operations.
 * Owns cmd_fd from then on, also on failure (NULL, errno).
 */
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t size, void *offset,
				    uint32_t driver_id);
/* Overwrites the operations that are not NULL in `ops`: a table as libibverbs itself has it. */
void verbs_set_ops(struct verbs_context *context, const verbs_other_op *ops);
/* Undoes verbs_init; closes cmd_fd and async_fd. The memory stays the caller's, to be freed with free(). */
void verbs_uninit_context(struct verbs_context *context);

#endif
