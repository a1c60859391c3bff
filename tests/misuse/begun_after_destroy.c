/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A section of ibv_wr_start() is begun on a queue pair that is destroyed.
 * Finding: used-after-destroy
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;

	make_ends(&ends, argc, argv, 0);
	qp = make_extended_qp(&ends);
	MUST(ex = ibv_qp_to_qp_ex(qp));
	to_init(qp);
	if (clean) {
		ibv_wr_start(ex);
		ibv_wr_abort(ex);
	}
	MUST(!ibv_destroy_qp(qp));
	if (!clean) {
		ibv_wr_start(ex);
		MUST(ibv_wr_complete(ex));
	}
	destroy_ends(&ends);
	return 0;
}
