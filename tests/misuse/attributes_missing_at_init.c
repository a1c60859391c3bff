/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A queue pair that is to be connected by number is moved to INIT without its port.
 * Finding: attributes-missing
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };

	make_ends(&ends, argc, argv, 0);
	if (clean)
		to_init(ends.a);
	else
		MUST(!ibv_modify_qp(ends.a, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
	to_init(ends.b);
	to_rtr(ends.a, ends.b);
	to_rts(ends.a);
	to_rtr(ends.b, ends.a);
	to_rts(ends.b);
	destroy_ends(&ends);
	return 0;
}
