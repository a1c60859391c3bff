/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A completion queue has fewer entries than its queue pairs may have requests outstanding, though a device that rounds
 * up may make enough of them.
 * Hint: cq-too-small
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;

	make_ends(&ends, argc, argv, 0);
	MUST(!ibv_destroy_qp(ends.a));
	MUST(!ibv_destroy_qp(ends.b));
	MUST(!ibv_destroy_cq(ends.sends));
	MUST(ends.sends = ibv_create_cq(ends.context, clean ? 2 * DEPTH : 2 * DEPTH - 1, NULL, NULL, 0));
	ends.a = make_qp(&ends, 0);
	ends.b = make_qp(&ends, 0);
	destroy_ends(&ends);
	return 0;
}
