/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A completion queue is polled after it was destroyed.
 * Finding: used-after-destroy
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_cq *queue;
	struct ibv_wc wc;

	make_ends(&ends, argc, argv, 0);
	MUST(queue = ibv_create_cq(ends.context, 4, NULL, NULL, 0));
	if (clean)
		MUST(ibv_poll_cq(queue, 1, &wc) == 0);
	MUST(!ibv_destroy_cq(queue));
	if (!clean)
		MUST(ibv_poll_cq(queue, 1, &wc) < 0);
	destroy_ends(&ends);
	return 0;
}
