/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * More requests are posted than the send queue has room for, without a look at the completions that wait.
 * Hint: send-queue-full
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	int posted;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	for (int i = 0; i < DEPTH; ++i)
		MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	for (posted = 0; posted < DEPTH; ++posted)
		MUST(!post_send(ends.a, send_of(&sge, posted)));
	for (int i = 0; i < DEPTH; ++i)
		MUST(next_received(&ends).status == IBV_WC_SUCCESS);
	if (!clean)
		MUST(post_send(ends.a, send_of(&sge, posted)));
	while (posted-- > 0)
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	if (clean) {
		MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
		MUST(!post_send(ends.a, send_of(&sge, DEPTH)));
		MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	destroy_ends(&ends);
	return 0;
}
