/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A Send names its memory by an lkey with its bytes in the other order.
 * Finding: local-protection
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	if (!clean)
		sge.lkey = __builtin_bswap32(sge.lkey);
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	MUST((next_sent(&ends).status == IBV_WC_SUCCESS) == clean);
	destroy_ends(&ends);
	return 0;
}
