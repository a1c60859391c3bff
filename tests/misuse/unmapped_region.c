/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory is unmapped before its region is deregistered, with nothing in flight.
 * Hint: memory-unmapped
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_mr *mr;
	void *more = map_pages(SIZE);

	make_ends(&ends, argc, argv, 0);
	MUST(mr = ibv_reg_mr(ends.pd, more, SIZE, 0));
	if (!clean)
		MUST(!munmap(more, SIZE));
	MUST(!ibv_dereg_mr(mr));
	if (clean)
		MUST(!munmap(more, SIZE));
	destroy_ends(&ends);
	return 0;
}
