/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A section of ibv_wr_start() is begun on a queue pair that is destroyed. The copy stands for its memory that nobody has
 * written to since.
 * Finding: used-after-destroy
 */
#include "misuse.h"

#include <malloc.h>

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_ex *ex, *copied_ex;
	struct ibv_qp *qp;
	size_t size;
	char *copy;

	make_ends(&ends, argc, argv, 0);
	qp = make_extended_qp(&ends);
	MUST(ex = ibv_qp_to_qp_ex(qp));
	to_init(qp);
	size = malloc_usable_size(qp);
	MUST(copy = malloc(size));
	memcpy(copy, qp, size);
	copied_ex = (struct ibv_qp_ex *)(copy + ((char *)ex - (char *)qp));
	if (clean) {
		ibv_wr_start(ex);
		ibv_wr_abort(ex);
	}
	MUST(!ibv_destroy_qp(qp));
	if (!clean) {
		ibv_wr_start(copied_ex);
		MUST(ibv_wr_complete(copied_ex));
	}
	free(copy);
	destroy_ends(&ends);
	return 0;
}
