/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Watches the last byte of an RDMA Write in memory, and takes the rest for placed when it changes. Clean, it waits for
 * the completion of a Send behind the Write, before which all of that is placed (RFC 5040 5.5).
 */
#include "last_byte.h"

#define WRITES 100

static void post_write(int value)
{
	struct ibv_sge from = piece(&ends, 0, BYTES), message = piece(&ends, 0, 8);

	memset(ends.memory, value, BYTES);
	MUST(!post_send(ends.a, rdma_of(&ends, IBV_WR_RDMA_WRITE, &from, BYTES, 0)));
	if (clean)
		MUST(!post_send(ends.a, send_of(&message, 0)));
}

int main(int argc, char **argv)
{
	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_WRITE);
	connect_ends(&ends);
	for (int i = 1; i <= WRITES; i++) {
		if (clean)
			MUST(!post_recv(ends.b, piece(&ends, 0, 8), 0));
		post_write(i);
		if (clean)
			MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		else
			await_last_byte((char)i);
		expect_all((char)i);
		for (int sent = 0; sent < 1 + clean; sent++)
			MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	destroy_ends(&ends);
	return 0;
}
