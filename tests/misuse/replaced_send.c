/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Other memory is mapped in the place of what a Send is to take.
 * Finding: memory-unmapped
 */
#include "misuse.h"

static void replace(void *memory)
{
	MUST(mmap(memory, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
}

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge;
	struct ibv_mr *mr;
	void *more = map_pages(SIZE);

	make_ends(&ends, argc, argv, 0);
	MUST(mr = ibv_reg_mr(ends.pd, more, SIZE, 0));
	connect_in_vain(&ends);
	sge = piece_of(mr, 0, 64);
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	if (!clean)
		replace(more);
	MUST(!ibv_modify_qp(ends.a, &attr, IBV_QP_STATE));
	MUST(next_sent(&ends).status == IBV_WC_WR_FLUSH_ERR);
	MUST(!ibv_dereg_mr(mr));
	if (clean)
		replace(more);
	MUST(!munmap(more, SIZE));
	destroy_ends(&ends);
	return 0;
}
