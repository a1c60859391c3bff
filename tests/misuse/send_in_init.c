/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A Send is posted before the queue pair is connected.
 * Finding: wrong-state
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	sge = piece(&ends, 0, 64);
	if (clean) {
		connect_ends(&ends);
		MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	} else {
		to_init(ends.a);
	}
	MUST((post_send(ends.a, send_of(&sge, 1)) == 0) == clean);
	if (clean)
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	destroy_ends(&ends);
	return 0;
}
