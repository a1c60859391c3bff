/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory is protected before the completion of the Send that names it was polled.
 * Hint: buffer-in-flight
 */
#include <sys/mman.h>

#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	void *more = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	MUST(more != MAP_FAILED);
	MUST(mr = ibv_reg_mr(ends.pd, more, SIZE, 0));
	sge = (struct ibv_sge){ .addr = (uintptr_t)more, .length = 64, .lkey = mr->lkey };
	/* Of a connection that stands a Send is under way when its post returns. */
	MUST(!post_recv(ends.b, piece(&ends, 0, 64), 2));
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	MUST(next_received(&ends).status == IBV_WC_SUCCESS);
	MUST(!post_recv(ends.b, piece(&ends, 0, 64), 2));
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	if (!clean)
		MUST(!mprotect(more, SIZE, PROT_NONE));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	MUST(!ibv_dereg_mr(mr));
	MUST(!munmap(more, SIZE));
	destroy_ends(&ends);
	return 0;
}
