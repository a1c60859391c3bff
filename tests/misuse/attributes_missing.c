/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A queue pair is moved to RTS without retry_cnt and max_rd_atomic.
 * Finding: attributes-missing
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .rnr_retry = 7 };

	make_ends(&ends, argc, argv, 0);
	to_init(ends.a);
	to_init(ends.b);
	to_rtr(ends.a, ends.b);
	if (clean)
		to_rts(ends.a);
	else
		MUST(!ibv_modify_qp(ends.a, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN));
	to_rtr(ends.b, ends.a);
	to_rts(ends.b);
	destroy_ends(&ends);
	return 0;
}
