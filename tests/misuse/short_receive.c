/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receive is shorter than the message that comes.
 * Finding: receive-too-short
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	MUST(!post_recv(ends.b, piece(&ends, 1024, clean ? 64 : 63), 2));
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	MUST((next_received(&ends).status == IBV_WC_SUCCESS) == clean);
	if (clean)
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	destroy_ends(&ends);
	return 0;
}
