/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A Send is posted before its queue pair is in RTS.
 * Finding: wrong-state
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	to_init(ends.a);
	to_init(ends.b);
	sge = piece(&ends, 0, 64);
	MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	to_rtr(ends.a, ends.b);
	if (!clean)
		MUST(!post_send(ends.a, send_of(&sge, 1)));
	to_rts(ends.a);
	to_rtr(ends.b, ends.a);
	to_rts(ends.b);
	if (clean)
		MUST(!post_send(ends.a, send_of(&sge, 1)));
	MUST(next_received(&ends).status == IBV_WC_SUCCESS);
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	destroy_ends(&ends);
	return 0;
}
