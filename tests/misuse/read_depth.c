/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An RDMA Read is posted on a queue pair that was moved to RTS with max_rd_atomic 0.
 * Finding: read-depth
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	to_init(ends.a);
	to_init(ends.b);
	to_rtr(ends.a, ends.b);
	attr.max_rd_atomic = clean ? 1 : 0;
	MUST(!ibv_modify_qp(ends.a, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
	to_rtr(ends.b, ends.a);
	to_rts(ends.b);
	sge = piece(&ends, 0, 64);
	wr = rdma_of(&ends, IBV_WR_RDMA_READ, &sge, 1024, 1);
	MUST(!post_send(ends.a, wr));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	destroy_ends(&ends);
	return 0;
}
