/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receives of a shared queue have completed, and nobody has polled that when their queue pairs are moved to RESET and
 * destroyed: nothing is posted any more. Their memory is unmapped before it is deregistered, which adapters allow.
 * Hint: memory-unmapped
 */
#include "misuse.h"

static struct ends ends;

/* One Send, and a Read, which is answered behind it. */
static void send_one(struct ibv_qp *from)
{
	struct ibv_sge source = piece(&ends, 0, 64), sink = piece(&ends, 64, 8);

	MUST(!post_send(from, send_of(&source, 3)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	MUST(!post_send(from, rdma_of(&ends, IBV_WR_RDMA_READ, &sink, 128, 4)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_qp_init_attr of_qp = { .cap = { DEPTH, 0, 1, 0, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_srq *srq;
	struct ibv_qp *destroyed, *emptied, *unused;
	struct ibv_mr *mr;
	char *page = map_pages(SIZE);

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ);
	MUST(mr = ibv_reg_mr(ends.pd, page, SIZE, IBV_ACCESS_LOCAL_WRITE));
	MUST(srq = ibv_create_srq(ends.pd, &init));
	of_qp.send_cq = ends.sends;
	of_qp.recv_cq = ends.receives;
	of_qp.srq = srq;
	MUST(destroyed = ibv_create_qp(ends.pd, &of_qp));
	MUST(emptied = ibv_create_qp(ends.pd, &of_qp));
	MUST(unused = ibv_create_qp(ends.pd, &of_qp)); /* in INIT it could take what is posted */
	connect_pair(ends.a, destroyed);
	connect_pair(ends.b, emptied);
	to_init(unused);
	sge = piece_of(mr, 0, 64);
	for (int i = 0; i < 2; ++i)
		MUST(!ibv_post_srq_recv(srq, &wr, &bad));
	send_one(ends.a);
	send_one(ends.b);
	MUST(!ibv_modify_qp(emptied, &reset, IBV_QP_STATE));
	MUST(!ibv_destroy_qp(destroyed));
	if (clean)
		MUST(!ibv_dereg_mr(mr));
	MUST(!munmap(page, SIZE));
	if (!clean)
		MUST(!ibv_dereg_mr(mr));
	MUST(!ibv_destroy_qp(emptied));
	MUST(!ibv_destroy_qp(unused));
	MUST(!ibv_destroy_srq(srq));
	destroy_ends(&ends);
	return 0;
}
