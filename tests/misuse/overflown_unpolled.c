/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * More completions come than their queue has entries, and nobody polls it or destroys it before the process ends.
 * Finding: cq-too-small
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	make_ends(&ends, argc, argv, 0);
	MUST(!ibv_destroy_qp(ends.a));
	MUST(!ibv_destroy_qp(ends.b));
	MUST(!ibv_destroy_cq(ends.receives));
	MUST(ends.receives = ibv_create_cq(ends.context, clean ? 2 * DEPTH : 2, NULL, NULL, 0));
	ends.a = make_qp(&ends, 0);
	ends.b = make_qp(&ends, 0);
	to_init(ends.b);
	for (int i = 0; i < DEPTH; ++i)
		MUST(!post_recv(ends.b, piece(&ends, 0, 64), (uint64_t)i));
	/* Its receives are flushed. */
	MUST(!ibv_modify_qp(ends.b, &attr, IBV_QP_STATE));
	if (!clean)
		return 0;
	destroy_ends(&ends);
	return 0;
}
