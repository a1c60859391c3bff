/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A completion queue is polled after it was destroyed. The copy stands for its memory that nobody has written to since.
 * Finding: used-after-destroy
 */
#include "misuse.h"

#include <malloc.h>

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_cq *queue, *copy;
	struct ibv_wc wc;
	size_t size;

	make_ends(&ends, argc, argv, 0);
	MUST(queue = ibv_create_cq(ends.context, 4, NULL, NULL, 0));
	size = malloc_usable_size(queue);
	MUST(copy = malloc(size));
	memcpy(copy, queue, size);
	if (clean)
		MUST(ibv_poll_cq(queue, 1, &wc) == 0);
	MUST(!ibv_destroy_cq(queue));
	if (!clean)
		MUST(ibv_poll_cq(copy, 1, &wc) < 0);
	free(copy);
	destroy_ends(&ends);
	return 0;
}
