/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Four messages have come, as the answer to a Read behind them shows, and the program takes it that one poll gives all
 * of them.
 */
#include "../misuse/misuse.h"

#define ROUNDS 5

static struct ends ends;

static void send_four(void)
{
	struct ibv_sge sge = piece(&ends, SIZE / 2, 64), sink = piece(&ends, 0, 8);

	for (uint64_t i = 0; i < DEPTH; i++)
		MUST(!post_recv(ends.b, piece(&ends, 64 * (i + 1), 64), i));
	for (uint64_t i = 0; i < DEPTH; i++) {
		MUST(!post_send(ends.a, send_of(&sge, i)));
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	MUST(!post_send(ends.a, rdma_of(&ends, IBV_WR_RDMA_READ, &sink, SIZE / 2, DEPTH)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	struct ibv_wc wcs[DEPTH];

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	connect_ends(&ends);
	for (int round = 0; round < ROUNDS; round++) {
		send_four();
		if (clean)
			for (uint64_t i = 0; i < DEPTH; i++)
				MUST(next_received(&ends).wr_id == i);
		else
			MUST(ibv_poll_cq(ends.receives, DEPTH, wcs) == DEPTH);
	}
	destroy_ends(&ends);
	return 0;
}
