/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two queue pairs of this process on uiw_lo, connected to each other by number, for programs that commit one misuse,
 * or, with the argument "clean", do the same as it should be. A call that fails unexpectedly ends the program with
 * status 1.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SIZE 4096
#define DEPTH 4

/* Ends the program unless it holds. */
#define MUST(condition)                                                                        \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

struct ends {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *sends, *receives; /* where they complete */
	struct ibv_qp *a, *b;
	struct ibv_mr *mr; /* of `memory`; local writes only, unless says otherwise */
	char memory[SIZE];
};

static bool clean;

static inline struct ibv_context *open_loopback(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; ++i)
		if (strcmp(ibv_get_device_name(list[i]), "uiw_lo") == 0)
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	MUST(context);
	return context;
}

static inline struct ibv_qp *make_qp(struct ends *ends, uint32_t inline_data)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ends->sends,
		.recv_cq = ends->receives,
		.cap = { DEPTH, DEPTH, 1, 1, inline_data },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(ends->pd, &init);

	MUST(qp);
	return qp;
}

/* One whose Sends may go by ibv_wr_send(). */
static inline struct ibv_qp *make_extended_qp(struct ends *ends)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ends->sends,
		.recv_cq = ends->receives,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = ends->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp;

	MUST(qp = ibv_create_qp_ex(ends->context, &init));
	return qp;
}

static inline void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static inline void to_rtr(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 4 };

	attr.dest_qp_num = peer->qp_num;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	MUST(!ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid));
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

static inline void to_rts(struct ibv_qp *qp)
{
	/* An rnr_retry of 7 is for ever. */
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 6 };

	attr.max_rd_atomic = 4;
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

static inline void connect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	to_init(a);
	to_init(b);
	to_rtr(a, b);
	to_rts(a);
	to_rtr(b, a);
	to_rts(b);
}

static inline void connect_ends(struct ends *ends)
{
	connect_pair(ends->a, ends->b);
}

/* Its peer does not connect: what `a` posts waits. */
static inline void connect_in_vain(struct ends *ends)
{
	to_init(ends->a);
	to_rtr(ends->a, ends->b);
	to_rts(ends->a);
}

/* The queue pairs are not connected yet. */
static inline void make_ends(struct ends *ends, int argc, char **argv, int access)
{
	clean = argc > 1 && strcmp(argv[1], "clean") == 0;
	ends->context = open_loopback();
	MUST(ends->pd = ibv_alloc_pd(ends->context));
	MUST(ends->sends = ibv_create_cq(ends->context, 64, NULL, NULL, 0));
	MUST(ends->receives = ibv_create_cq(ends->context, 64, NULL, NULL, 0));
	ends->a = make_qp(ends, 0);
	ends->b = make_qp(ends, 0);
	MUST(ends->mr = ibv_reg_mr(ends->pd, ends->memory, SIZE, IBV_ACCESS_LOCAL_WRITE | access));
}

/* Anew, with another completion queue for the receives. */
static inline void make_anew(struct ends *ends, int entries, struct ibv_comp_channel *channel)
{
	MUST(!ibv_destroy_qp(ends->a));
	MUST(!ibv_destroy_qp(ends->b));
	MUST(!ibv_destroy_cq(ends->receives));
	MUST(ends->receives = ibv_create_cq(ends->context, entries, NULL, channel, 0));
	ends->a = make_qp(ends, 0);
	ends->b = make_qp(ends, 0);
}

/* Anew, with a completion channel for the receives: for programs that wait for events. */
static inline struct ibv_comp_channel *make_channel(struct ends *ends)
{
	struct ibv_comp_channel *channel;

	MUST(channel = ibv_create_comp_channel(ends->context));
	make_anew(ends, 2 * DEPTH, channel);
	return channel;
}

static inline void destroy_all_but_the_device(struct ends *ends)
{
	MUST(!ibv_destroy_qp(ends->a));
	MUST(!ibv_destroy_qp(ends->b));
	MUST(!ibv_dereg_mr(ends->mr));
	MUST(!ibv_destroy_cq(ends->sends));
	MUST(!ibv_destroy_cq(ends->receives));
	MUST(!ibv_dealloc_pd(ends->pd));
}

static inline void destroy_ends(struct ends *ends)
{
	destroy_all_but_the_device(ends);
	MUST(!ibv_close_device(ends->context));
}

static inline void destroy_ends_and_channel(struct ends *ends, struct ibv_comp_channel *channel)
{
	destroy_all_but_the_device(ends);
	MUST(!ibv_destroy_comp_channel(channel));
	MUST(!ibv_close_device(ends->context));
}

/* Pages that can be unmapped. */
static inline void *map_pages(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(pages != MAP_FAILED);
	return pages;
}

static inline struct ibv_sge piece_of(const struct ibv_mr *mr, size_t at, uint32_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)mr->addr + at, .length = length, .lkey = mr->lkey };
}

/* A piece of the memory. */
static inline struct ibv_sge piece(const struct ends *ends, size_t at, uint32_t length)
{
	return piece_of(ends->mr, at, length);
}

static inline struct ibv_send_wr send_of(struct ibv_sge *sge, uint64_t wr_id)
{
	return (struct ibv_send_wr){ .wr_id = wr_id, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				     .send_flags = IBV_SEND_SIGNALED };
}

/* An RDMA Read or Write of the memory, from `at` on. */
static inline struct ibv_send_wr rdma_of(const struct ends *ends, enum ibv_wr_opcode opcode, struct ibv_sge *sge, size_t at,
					 uint64_t wr_id)
{
	struct ibv_send_wr wr = send_of(sge, wr_id);

	wr.opcode = opcode;
	wr.wr.rdma.remote_addr = (uintptr_t)ends->memory + at;
	wr.wr.rdma.rkey = ends->mr->rkey;
	return wr;
}

static inline int post_send(struct ibv_qp *qp, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static inline int post_recv(struct ibv_qp *qp, struct ibv_sge sge, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static inline struct ibv_wc next_of(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	const time_t end = time(NULL) + 60;
	int count;

	while ((count = ibv_poll_cq(cq, 1, &wc)) == 0 && time(NULL) < end)
		sched_yield();
	MUST(count == 1);
	return wc;
}

/* The next completion of a Send or the like, and of a receive. */
static inline struct ibv_wc next_sent(const struct ends *ends)
{
	return next_of(ends->sends);
}
static inline struct ibv_wc next_received(const struct ends *ends)
{
	return next_of(ends->receives);
}

/* Sends twice: of a connection that stands the second Send is under way when its post returns. */
static inline void send_under_way(const struct ends *ends, struct ibv_sge *sge)
{
	MUST(!post_recv(ends->b, piece(ends, 1024, 64), 2));
	MUST(!post_send(ends->a, send_of(sge, 1)));
	MUST(next_sent(ends).status == IBV_WC_SUCCESS);
	MUST(next_received(ends).status == IBV_WC_SUCCESS);
	MUST(!post_recv(ends->b, piece(ends, 1024, 64), 2));
	MUST(!post_send(ends->a, send_of(sge, 1)));
}

/* One that completes at once, as a receive of a queue pair in error does. */
static inline void complete_a_receive(const struct ends *ends)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	MUST(!post_recv(ends->b, piece(ends, 0, 64), 1));
	MUST(!ibv_modify_qp(ends->b, &attr, IBV_QP_STATE));
}

/* More receives complete, flushed, than their queue has entries; clean, it has enough. */
static inline void flush_into_few_entries(struct ends *ends)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	make_anew(ends, clean ? 2 * DEPTH : 2, NULL);
	to_init(ends->b);
	for (int i = 0; i < DEPTH; ++i)
		MUST(!post_recv(ends->b, piece(ends, 0, 64), (uint64_t)i));
	MUST(!ibv_modify_qp(ends->b, &attr, IBV_QP_STATE));
}

#endif
