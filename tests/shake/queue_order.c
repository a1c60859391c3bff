/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Takes a Send for completed because the peer has received it: the completions are those of two queues, and nothing says
 * which is first.
 */
#include "../misuse/misuse.h"

#define MESSAGES 20

static struct ends ends;

int main(int argc, char **argv)
{
	struct ibv_sge sge;
	struct ibv_wc wc;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, SIZE / 2, 64);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		MUST(!post_recv(ends.b, piece(&ends, 0, 64), i));
		MUST(!post_send(ends.a, send_of(&sge, i)));
		MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		if (clean)
			wc = next_sent(&ends);
		else
			MUST(ibv_poll_cq(ends.sends, 1, &wc) == 1);
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == i);
	}
	destroy_ends(&ends);
	return 0;
}
