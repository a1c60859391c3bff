/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Objects are made with others that are destroyed: the attributes of a queue pair name a completion queue that has gone
 * with the queue pair before, and memory is registered in a protection domain that has.
 * Finding: used-after-destroy
 */
#include "misuse.h"

#include <errno.h>

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_pd *pd;
	struct ibv_cq *gone;
	struct ibv_qp *qp;
	struct ibv_mr *mr;

	make_ends(&ends, argc, argv, 0);
	MUST(pd = ibv_alloc_pd(ends.context));
	MUST(gone = ibv_create_cq(ends.context, 2 * DEPTH, NULL, NULL, 0));
	struct ibv_qp_init_attr init = {
		.send_cq = gone, .recv_cq = gone, .cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
	};
	MUST(qp = ibv_create_qp(ends.pd, &init));
	MUST(!ibv_destroy_qp(qp));
	if (clean) {
		MUST(qp = ibv_create_qp(ends.pd, &init));
		MUST(!ibv_destroy_qp(qp));
		MUST(mr = ibv_reg_mr(pd, ends.memory, SIZE, 0));
		MUST(!ibv_dereg_mr(mr));
	}
	MUST(!ibv_destroy_cq(gone));
	MUST(!ibv_dealloc_pd(pd));
	if (!clean) {
		MUST(!ibv_create_qp(ends.pd, &init) && errno == EINVAL);
		MUST(!ibv_reg_mr(pd, ends.memory, SIZE, 0) && errno == EINVAL);
	}
	destroy_ends(&ends);
	return 0;
}
