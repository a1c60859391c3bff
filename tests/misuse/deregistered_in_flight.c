/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A memory region is deregistered before the completion of the Send that names it was polled.
 * Hint: buffer-in-flight
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
	/* Once more than needed: the connection stands when it begins. */
	for (int round = 0; round < 2; ++round) {
		MUST(!post_recv(ends.b, piece(&ends, 0, 64), 2));
		MUST(!post_send(ends.a, send_of(&sge, 1)));
		if (round == 0 || clean)
			MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	MUST(!ibv_dereg_mr(mr));
	if (!clean)
		next_sent(&ends); /* it may have been sent in time or not */
	destroy_ends(&ends);
	return 0;
}
