/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A message is sent that no receive is ever posted for.
 * Finding: no-receive
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	if (clean)
		MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	if (clean) {
		MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	} else {
		/* The end of the connection flushes it. */
		MUST(!post_recv(ends.a, piece(&ends, 1024, 64), 2));
		MUST(next_received(&ends).status == IBV_WC_WR_FLUSH_ERR);
		next_sent(&ends);
	}
	destroy_ends(&ends);
	return 0;
}
