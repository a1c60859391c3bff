/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A way out on an error leaves the section of ibv_wr_start() open, and the queue pair is destroyed in it.
 * Finding: wr-section
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_init_attr_ex init = {
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_ex *ex;

	make_ends(&ends, argc, argv, 0);
	MUST(!ibv_destroy_qp(ends.a));
	init.send_cq = ends.sends;
	init.recv_cq = ends.receives;
	init.pd = ends.pd;
	MUST(ends.a = ibv_create_qp_ex(ends.context, &init));
	MUST(ex = ibv_qp_to_qp_ex(ends.a));
	connect_ends(&ends);
	ibv_wr_start(ex);
	if (clean)
		ibv_wr_abort(ex);
	destroy_ends(&ends);
	return 0;
}
