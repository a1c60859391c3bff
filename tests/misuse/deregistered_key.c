/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A Send names a memory region that was deregistered.
 * Finding: local-protection
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	static char more[64];
	struct ibv_sge sge;
	struct ibv_mr *mr;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	MUST(mr = ibv_reg_mr(ends.pd, more, sizeof(more), 0));
	sge = piece_of(mr, 0, sizeof(more));
	MUST(!post_recv(ends.b, piece(&ends, 0, 64), 2));
	if (!clean)
		MUST(!ibv_dereg_mr(mr));
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	MUST((next_sent(&ends).status == IBV_WC_SUCCESS) == clean);
	if (clean)
		MUST(!ibv_dereg_mr(mr));
	destroy_ends(&ends);
	return 0;
}
