/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory is unmapped before the completion of the Send that names it was polled.
 * Hint: memory-unmapped
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	void *more = map_pages(SIZE);

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	MUST(mr = ibv_reg_mr(ends.pd, more, SIZE, 0));
	sge = piece_of(mr, 0, 64);
	send_under_way(&ends, &sge);
	if (!clean)
		MUST(!munmap(more, SIZE));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	MUST(!ibv_dereg_mr(mr));
	if (clean)
		MUST(!munmap(more, SIZE));
	destroy_ends(&ends);
	return 0;
}
