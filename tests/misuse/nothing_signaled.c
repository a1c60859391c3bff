/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * As many Sends as the send queue takes, none of which asks for a completion, and one more.
 * Finding: send-queue-full
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	bool refused = false;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	for (int i = 0; i <= DEPTH; ++i) {
		if (i < DEPTH || clean)
			MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 100));
		wr = send_of(&sge, (uint64_t)i);
		wr.send_flags = clean ? IBV_SEND_SIGNALED : 0;
		refused = post_send(ends.a, wr) != 0;
		if (refused)
			break;
		MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		if (clean)
			MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	MUST(refused == !clean);
	destroy_ends(&ends);
	return 0;
}
