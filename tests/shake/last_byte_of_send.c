/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Watches the last byte of a posted receive, and takes the message for there when it changes. Clean, it waits for the
 * receive's completion: until then what is in the buffer is undefined (RFC 5040 5.5).
 */
#include "last_byte.h"

#define MESSAGES 40

int main(int argc, char **argv)
{
	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	for (int i = 1; i <= MESSAGES; i++) {
		struct ibv_sge from = piece(&ends, 0, BYTES);

		memset(ends.memory, i, BYTES);
		MUST(!post_recv(ends.b, piece(&ends, BYTES, BYTES), 0));
		MUST(!post_send(ends.a, send_of(&from, 0)));
		if (clean)
			MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		else
			await_last_byte((char)i);
		expect_all((char)i);
		if (!clean)
			MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	destroy_ends(&ends);
	return 0;
}
