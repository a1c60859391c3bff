/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A protection domain is deallocated before what is made of it.
 * Finding: destroy-order
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;

	make_ends(&ends, argc, argv, 0);
	if (!clean)
		MUST(ibv_dealloc_pd(ends.pd) != 0);
	destroy_ends(&ends);
	return 0;
}
