/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receive names memory that was registered without IBV_ACCESS_LOCAL_WRITE.
 * Finding: local-protection
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	static char more[64];
	struct ibv_sge sge, source;
	struct ibv_mr *mr;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	MUST(mr = ibv_reg_mr(ends.pd, more, sizeof(more), clean ? IBV_ACCESS_LOCAL_WRITE : 0));
	sge = piece_of(mr, 0, sizeof(more));
	source = piece(&ends, 0, 64);
	MUST(!post_recv(ends.b, sge, 2));
	MUST(!post_send(ends.a, send_of(&source, 1)));
	MUST((next_received(&ends).status == IBV_WC_SUCCESS) == clean);
	if (clean)
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	MUST(!ibv_destroy_qp(ends.a));
	MUST(!ibv_destroy_qp(ends.b));
	MUST(!ibv_dereg_mr(mr));
	MUST(!ibv_dereg_mr(ends.mr));
	MUST(!ibv_destroy_cq(ends.sends));
	MUST(!ibv_destroy_cq(ends.receives));
	MUST(!ibv_dealloc_pd(ends.pd));
	MUST(!ibv_close_device(ends.context));
	return 0;
}
