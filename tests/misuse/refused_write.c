/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An RDMA Write into a region that was registered without the right to it: it completes with success before the peer
 * refuses it.
 * Finding: remote-access
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	make_ends(&ends, argc, argv, 0);
	if (clean) {
		MUST(!ibv_dereg_mr(ends.mr));
		MUST(ends.mr = ibv_reg_mr(ends.pd, ends.memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	}
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	wr = rdma_of(&ends, IBV_WR_RDMA_WRITE, &sge, 1024, 1);
	MUST(!post_recv(ends.a, piece(&ends, 2048, 64), 2));
	MUST(!post_send(ends.a, wr));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	if (clean)
		MUST(!ibv_modify_qp(ends.a, &attr, IBV_QP_STATE));
	MUST(next_received(&ends).status == IBV_WC_WR_FLUSH_ERR);
	destroy_ends(&ends);
	return 0;
}
