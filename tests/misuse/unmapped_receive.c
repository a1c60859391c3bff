/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The buffer of a receive is unmapped before a message came.
 * Finding: memory-unmapped
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge;
	struct ibv_mr *mr;
	void *more = map_pages(SIZE);

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	MUST(mr = ibv_reg_mr(ends.pd, more, SIZE, IBV_ACCESS_LOCAL_WRITE));
	sge = piece_of(mr, 64, 64);
	MUST(!post_recv(ends.b, sge, 2));
	if (!clean)
		MUST(!munmap(more, SIZE));
	MUST(!ibv_modify_qp(ends.b, &attr, IBV_QP_STATE));
	MUST(next_received(&ends).status == IBV_WC_WR_FLUSH_ERR);
	MUST(!ibv_dereg_mr(mr));
	if (clean)
		MUST(!munmap(more, SIZE));
	destroy_ends(&ends);
	return 0;
}
