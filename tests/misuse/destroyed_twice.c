/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Objects are destroyed twice. Each second call fails, and changes nothing.
 * Finding: used-after-destroy
 */
#include "misuse.h"

#include <errno.h>

/* Destroys it, and once more. */
#define TWICE(call)                           \
	do {                                  \
		MUST(!(call));                \
		if (!clean)                   \
			MUST((call) == EINVAL); \
	} while (0)

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_mw *window;

	make_ends(&ends, argc, argv, 0);
	MUST(window = ibv_alloc_mw(ends.pd, IBV_MW_TYPE_1));
	TWICE(ibv_dealloc_mw(window));
	TWICE(ibv_destroy_qp(ends.a));
	TWICE(ibv_destroy_qp(ends.b));
	TWICE(ibv_dereg_mr(ends.mr));
	TWICE(ibv_destroy_cq(ends.sends));
	TWICE(ibv_destroy_cq(ends.receives));
	TWICE(ibv_dealloc_pd(ends.pd));
	MUST(!ibv_close_device(ends.context));
	return 0;
}
