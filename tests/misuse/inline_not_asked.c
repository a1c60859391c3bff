/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A Send with inline data of a queue pair that was made without.
 * Finding: inline-not-asked
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	make_ends(&ends, argc, argv, 0);
	if (clean) {
		MUST(!ibv_destroy_qp(ends.a));
		ends.a = make_qp(&ends, 16);
	}
	connect_ends(&ends);
	sge = piece(&ends, 0, 16);
	MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	wr = send_of(&sge, 1);
	wr.send_flags |= IBV_SEND_INLINE;
	MUST(!post_send(ends.a, wr));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	destroy_ends(&ends);
	return 0;
}
