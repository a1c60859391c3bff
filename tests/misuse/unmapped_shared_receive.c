/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The buffer of a receive of a shared receive queue is cut off by mremap() before a message came.
 * Finding: memory-unmapped
 */
#define _GNU_SOURCE /* mremap() */
#include "misuse.h"

#define PAGE 4096

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_qp_init_attr of_qp = { .cap = { DEPTH, 0, 1, 0, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *more = map_pages(2 * PAGE);

	make_ends(&ends, argc, argv, 0);
	MUST(mr = ibv_reg_mr(ends.pd, more, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE));
	MUST(srq = ibv_create_srq(ends.pd, &init));
	of_qp.send_cq = ends.sends;
	of_qp.recv_cq = ends.receives;
	of_qp.srq = srq;
	MUST(qp = ibv_create_qp(ends.pd, &of_qp));
	to_init(qp);
	sge = piece_of(mr, PAGE, 64);
	MUST(!ibv_post_srq_recv(srq, &wr, &bad));
	if (!clean)
		MUST(mremap(more, 2 * PAGE, PAGE, 0) == more);
	MUST(!ibv_destroy_qp(qp));
	MUST(!ibv_destroy_srq(srq));
	MUST(!ibv_dereg_mr(mr));
	MUST(!munmap(more, 2 * PAGE));
	destroy_ends(&ends);
	return 0;
}
