/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Requests are described and completed without ibv_wr_start().
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
	MUST(!post_recv(ends.b, piece(&ends, 0, 64), 2));
	if (clean)
		ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, ends.mr->lkey, (uintptr_t)ends.memory, 64);
	MUST(!ibv_wr_complete(ex));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	MUST(next_received(&ends).status == IBV_WC_SUCCESS);
	destroy_ends(&ends);
	return 0;
}
