/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The peer is given the lkey of memory, and reads it by that.
 * Finding: key-swapped
 * Finding: remote-access
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	wr = rdma_of(&ends, IBV_WR_RDMA_READ, &sge, 1024, 1);
	if (!clean)
		wr.wr.rdma.rkey = ends.mr->lkey;
	MUST(!post_send(ends.a, wr));
	MUST(next_sent(&ends).status == (clean ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
	destroy_ends(&ends);
	return 0;
}
