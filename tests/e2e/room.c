/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What queue pairs take of the heap, their queues full: a line "DEPTH SGES BYTES" for each kind of them, BYTES of one.
 * What is posted stays outstanding, since their peer never connects.
 */
#include <malloc.h>

#include "../misuse/misuse.h"

enum { QUEUE_PAIRS = 8, MOST_SGES = 16 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *peer; /* of all of them: it never connects */
static char memory[64];

static size_t heap(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Its retries never end. */
static void connect_in_vain_to_peer(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 0, .retry_cnt = 7, .rnr_retry = 7 };

	to_init(qp);
	to_rtr(qp, peer);
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void fill(struct ibv_qp *qp, unsigned depth, int sges)
{
	struct ibv_sge list[MOST_SGES];
	struct ibv_recv_wr receive = { .sg_list = list, .num_sge = sges }, *bad_receive;
	struct ibv_send_wr send = { .sg_list = list, .num_sge = sges, .opcode = IBV_WR_SEND }, *bad_send;

	for (int i = 0; i < sges; ++i)
		list[i] = (struct ibv_sge){ (uintptr_t)memory, 1, mr->lkey };
	for (unsigned i = 0; i < depth; ++i) {
		receive.wr_id = send.wr_id = i;
		MUST(!ibv_post_recv(qp, &receive, &bad_receive));
		MUST(!ibv_post_send(qp, &send, &bad_send));
	}
}

static struct ibv_qp *make(unsigned depth, int sges)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = sges, .max_recv_sge = sges },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;

	MUST(qp = ibv_create_qp(pd, &init));
	return qp;
}

static size_t room_of(unsigned depth, int sges)
{
	struct ibv_qp *qps[QUEUE_PAIRS];
	const size_t before = heap();

	for (int i = 0; i < QUEUE_PAIRS; ++i) {
		qps[i] = make(depth, sges);
		connect_in_vain_to_peer(qps[i]);
		fill(qps[i], depth, sges);
	}
	const size_t taken = (heap() - before) / QUEUE_PAIRS;

	for (int i = 0; i < QUEUE_PAIRS; ++i)
		MUST(!ibv_destroy_qp(qps[i]));
	return taken;
}

int main(void)
{
	static const struct {
		unsigned depth;
		int sges;
	} kinds[] = { { 16, 1 }, { 128, 1 }, { 4096, 1 }, { 128, MOST_SGES }, { 4096, MOST_SGES } };

	context = open_loopback();
	MUST(pd = ibv_alloc_pd(context));
	MUST(cq = ibv_create_cq(context, 16, NULL, NULL, 0));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
	peer = make(1, 1);
	room_of(1, 1); /* what is there once for all of them */
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
		printf("%u %d %zu\n", kinds[i].depth, kinds[i].sges, room_of(kinds[i].depth, kinds[i].sges));
	MUST(!ibv_destroy_qp(peer));
	MUST(!ibv_dereg_mr(mr));
	MUST(!ibv_destroy_cq(cq));
	MUST(!ibv_dealloc_pd(pd));
	MUST(!ibv_close_device(context));
	return 0;
}
