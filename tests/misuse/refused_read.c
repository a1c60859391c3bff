/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An RDMA Read of a region that was registered without the right to it.
 * Finding: remote-access
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	make_ends(&ends, argc, argv, 0);
	if (clean) {
		MUST(!ibv_dereg_mr(ends.mr));
		MUST(ends.mr = ibv_reg_mr(ends.pd, ends.memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	}
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	wr = rdma_of(&ends, IBV_WR_RDMA_READ, &sge, 1024, 1);
	MUST(!post_send(ends.a, wr));
	MUST((next_sent(&ends).status == IBV_WC_SUCCESS) == clean);
	destroy_ends(&ends);
	return 0;
}
