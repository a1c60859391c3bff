/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two queue pairs take receives from one shared queue. When the message to the second one has come, which was sent after
 * those to the first had arrived, it takes all receives for used, and fills the queue again. The place of a receive is
 * free when its completion was polled (ibv_post_srq_recv(3)), and completions of different queue pairs have no order.
 * Clean, it counts them.
 */
#include "../misuse/misuse.h"

#define ROUNDS 30

static struct ends ends;

/* Two of `a`'s kind, which share their receives, and their peers. */
struct pair {
	struct ibv_qp *from, *to;
};

static struct pair make_pair(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ends.sends,
		.recv_cq = ends.receives,
		.srq = srq,
		.cap = { DEPTH, 0, 1, 0, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct pair pair = { make_qp(&ends, 0), ibv_create_qp(ends.pd, &init) };

	MUST(pair.to);
	connect_pair(pair.from, pair.to);
	return pair;
}

static void destroy_pair(struct pair pair)
{
	MUST(!ibv_destroy_qp(pair.from));
	MUST(!ibv_destroy_qp(pair.to));
}

static void fill(struct ibv_srq *srq)
{
	for (uint64_t i = 0; i < DEPTH; i++) {
		struct ibv_sge sge = piece(&ends, 128, 8);
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		MUST(!ibv_post_srq_recv(srq, &wr, &bad));
	}
}

/* What this queue pair has sent before has arrived when its Read is answered. */
static void read_one(struct ibv_qp *qp)
{
	struct ibv_sge sge = piece(&ends, 256, 8);

	MUST(!post_send(qp, rdma_of(&ends, IBV_WR_RDMA_READ, &sge, 0, DEPTH)));
}

int main(int argc, char **argv)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct pair first, second;
	struct ibv_sge message;
	struct ibv_srq *srq;

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ);
	MUST(srq = ibv_create_srq(ends.pd, &init));
	first = make_pair(srq);
	second = make_pair(srq);
	message = piece(&ends, 0, 8);
	for (int round = 0; round < ROUNDS; round++) {
		int received = 0, is_last = 0;

		fill(srq);
		for (uint64_t i = 0; i < DEPTH - 1; i++)
			MUST(!post_send(first.from, send_of(&message, i)));
		read_one(first.from);
		for (int i = 0; i < DEPTH; i++)
			MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
		MUST(!post_send(second.from, send_of(&message, 0)));
		while (clean ? received < DEPTH : !is_last) {
			const struct ibv_wc wc = next_received(&ends);

			MUST(wc.status == IBV_WC_SUCCESS);
			is_last = wc.qp_num == second.to->qp_num;
			received++;
		}
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	destroy_pair(first);
	destroy_pair(second);
	MUST(!ibv_destroy_srq(srq));
	destroy_ends(&ends);
	return 0;
}
