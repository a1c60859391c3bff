/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A way out on an error leaves the section of ibv_wr_start() open, and the queue pair is destroyed in it.
 * Finding: wr-section
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_ex *ex;

	make_ends(&ends, argc, argv, 0);
	MUST(!ibv_destroy_qp(ends.a));
	ends.a = make_extended_qp(&ends);
	MUST(ex = ibv_qp_to_qp_ex(ends.a));
	connect_ends(&ends);
	ibv_wr_start(ex);
	if (clean)
		ibv_wr_abort(ex);
	destroy_ends(&ends);
	return 0;
}
