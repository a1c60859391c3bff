/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Messages are sent before a receive is posted for them.
 * Hint: no-receive
 */
#include "misuse.h"

#define ROUNDS 10 /* of which one at least finds the message there before the receive */

int main(int argc, char **argv)
{
	static struct ends ends;
	const struct timespec a_while = { .tv_nsec = 30000000 };
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	for (int i = 0; i < ROUNDS; ++i) {
		if (clean)
			MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
		MUST(!post_send(ends.a, send_of(&sge, 1)));
		if (!clean) {
			nanosleep(&a_while, NULL);
			MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
		}
		MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	destroy_ends(&ends);
	return 0;
}
