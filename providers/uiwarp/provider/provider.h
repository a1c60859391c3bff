/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Glue between the operations libibverbs calls and libuiwarp.so.0: every object is libibverbs'
 * structure with the core's handle behind it. No state and no policy of its own.
 */
#ifndef UIWARP_PROVIDER_H
#define UIWARP_PROVIDER_H

#include <errno.h>

#include "abi/rdmav.h"
#include "uiwarp/uiwarp-verbs.h"

/* What every call below goes to: libuiwarp.so.0, or instruments in front of it. Set while libibverbs loads us. */
__attribute__((visibility("hidden"))) extern const struct uiwarp_verbs *core_verbs;

struct provider_device {
	struct verbs_device verbs;
	const struct uiwarp_device *core; /* NULL: it went while it was being found */
};

struct provider_context {
	/*
	 * libibverbs' structure ends where `verbs` does, whatever its version; a newer one than we are built with
	 * begins in here (provider_layout).
	 */
	char room[64];
	struct verbs_context verbs;
	char spare[64]; /* one that we do not know ends in here, and is refused then */
	const struct provider_layout *layout;
	struct uiwarp_context *core;
};

/* A form of what libibverbs and a provider share, as far as forms differ. */
struct provider_layout {
	int pabi; /* the number it goes by, */
	int since; /* but the operations are those of this release (abi/operations.h) */
	size_t context_at; /* where struct verbs_context has its ibv_context */
	const char *mark; /* a function that only such a libibverbs has; NULL: no need to look */
};

struct provider_pd {
	struct ibv_pd pd;
	struct uiwarp_pd *core;
};

struct provider_td {
	struct ibv_td td;
	struct uiwarp_td *core;
};

struct provider_mr {
	struct verbs_mr verbs;
	struct uiwarp_mr *core;
};

struct provider_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
		char space[UIWARP_VERBS_CQ_SIZE];
	};
	struct uiwarp_cq *core;
	/* From ibv_start_poll() to ibv_end_poll(): what the application looks at, and who else has to wait. */
	struct ibv_wc current;
	pthread_mutex_t polling;
	bool single_threaded; /* IBV_CREATE_CQ_ATTR_SINGLE_THREADED: nobody has to */
};

struct provider_srq {
	union {
		struct ibv_srq srq;
		char space[UIWARP_VERBS_SRQ_SIZE];
	};
	struct uiwarp_srq *core;
};

struct provider_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
		/* zero but for VERBS_QP_EX of those that ibv_wr_*() work on, wherever the loaded libibverbs has it */
		char space[UIWARP_VERBS_QP_SIZE];
	};
	struct uiwarp_qp *core;
	int sq_sig_all;
	/* Between ibv_wr_start() and ibv_wr_complete(): the work request that its setter may still complete. */
	struct ibv_send_wr wr;
	bool wr_open;
	int wr_error; /* the first of the batch */
};

/* The structures above but for the first begin with libibverbs' one. */
static inline const struct uiwarp_device *core_device(struct ibv_device *device)
{
	return ((struct provider_device *)device)->core;
}
static inline struct provider_context *context_of(struct ibv_context *context)
{
	return (struct provider_context *)((char *)context - offsetof(struct provider_context, verbs.context));
}
static inline struct uiwarp_context *core_context(struct ibv_context *context)
{
	return context_of(context)->core;
}
static inline struct uiwarp_pd *core_pd(struct ibv_pd *pd) { return ((struct provider_pd *)pd)->core; }
static inline struct uiwarp_td *core_td(struct ibv_td *td) { return ((struct provider_td *)td)->core; }
static inline struct uiwarp_cq *core_cq(struct ibv_cq *cq) { return ((struct provider_cq *)cq)->core; }
static inline struct uiwarp_srq *core_srq(struct ibv_srq *srq) { return ((struct provider_srq *)srq)->core; }
static inline struct uiwarp_qp *core_qp(struct ibv_qp *qp) { return ((struct provider_qp *)qp)->core; }

/* A zeroed object, or NULL with errno ENOMEM. */
void *provider_new(size_t size);
/* Frees what a failed creation had allocated, sets errno and returns NULL. */
void *provider_fail(void *object, int error);

/*
 * Waits, with `mutex` held, until the program has acknowledged all `got` events of an object that `call` destroys:
 * *acknowledged, which libibverbs counts, tells by `cond`. Whoever waits for a second hears what for; `function` is the
 * one that acknowledges.
 */
void provider_wait_for_acks(const char *call, const char *function, uint32_t got, const uint32_t *acknowledged,
			    pthread_cond_t *cond, pthread_mutex_t *mutex);

/*
 * What a verb that is no data path operation returns: many programs print errno, which a kernel's error
 * would have set as well.
 */
static inline int provider_result(int error)
{
	if (error)
		errno = error;
	return error;
}

/*
 * Where in a queue pair the loaded libibverbs looks for its flags: an offset into the space of struct
 * provider_qp. 0: neither where rdma-core up to 44 has them nor where 45 and later do.
 */
size_t provider_qp_flags_at(void);

/* The operations, one group per source file. */
struct ibv_pd *provider_alloc_pd(struct ibv_context *context);
struct ibv_pd *provider_import_pd(struct ibv_context *context, uint32_t handle);
void provider_unimport_pd(struct ibv_pd *pd);
struct ibv_pd *provider_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
int provider_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *provider_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init);
int provider_dealloc_td(struct ibv_td *td);
struct ibv_mr *provider_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);
int provider_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access);
int provider_dereg_mr(struct verbs_mr *mr);
struct ibv_mr *provider_import_mr(struct ibv_pd *pd, uint32_t handle);
void provider_unimport_mr(struct ibv_mr *mr);
int provider_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sges,
		       uint32_t count);
struct ibv_mw *provider_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int provider_dealloc_mw(struct ibv_mw *mw);
int provider_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

struct ibv_ah *provider_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int provider_destroy_ah(struct ibv_ah *ah);

struct ibv_cq *provider_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
				  int comp_vector);
int provider_destroy_cq(struct ibv_cq *cq);
int provider_resize_cq(struct ibv_cq *cq, int cqe);
int provider_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int provider_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void provider_cq_event(struct ibv_cq *cq);
struct ibv_cq_ex *provider_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init);
/* IBV_WC_EX_WITH_*: what ibv_wc_read_*() can tell of an iWARP completion. */
extern const uint64_t provider_wc_flags;
/* Makes ibv_start_poll() and its family work on a completion queue. */
void provider_cq_set_poll_ops(struct provider_cq *mine);

struct ibv_srq *provider_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init);
int provider_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int provider_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int provider_destroy_srq(struct ibv_srq *srq);
int provider_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_qp *provider_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_qp *provider_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
/* Makes the ibv_wr_*() calls work on a queue pair. */
void provider_qp_set_wr_ops(struct provider_qp *mine);
int provider_destroy_qp(struct ibv_qp *qp);
int provider_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int provider_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int provider_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int provider_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
int provider_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int provider_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * The layout that goes by this private ABI in a libibverbs that has the functions `has` says; NULL: there is
 * none. The second is that of the libibverbs that loaded us.
 */
const struct provider_layout *provider_layout_of(int pabi, bool (*has)(const char *function));
const struct provider_layout *provider_loaded_layout(void);
/* Writes the table that a libibverbs of this layout expects, and returns how many operations it has. */
size_t provider_operations(const struct provider_layout *layout, const struct verbs_all_ops *all,
			   verbs_other_op table[UIWARP_OPERATIONS_MAX]);

struct verbs_context *provider_alloc_context(struct ibv_device *device, int cmd_fd, void *private_data);
struct verbs_context *provider_import_context(struct ibv_device *device, int cmd_fd);

#endif
