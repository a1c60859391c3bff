/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Watches the last byte of the memory that an RDMA Read fills, and takes the rest for read when it changes. Clean, it
 * waits for the Read's completion (RFC 5040 5.5).
 */
#include "last_byte.h"

#define READS 40

static void post_read(int value)
{
	struct ibv_sge to = piece(&ends, BYTES, BYTES);

	memset(ends.memory, value, BYTES);
	MUST(!post_send(ends.a, rdma_of(&ends, IBV_WR_RDMA_READ, &to, 0, 0)));
}

int main(int argc, char **argv)
{
	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ);
	connect_ends(&ends);
	for (int i = 1; i <= READS; i++) {
		post_read(i);
		if (clean)
			MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
		else
			await_last_byte((char)i);
		expect_all((char)i);
		if (!clean)
			MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	destroy_ends(&ends);
	return 0;
}
