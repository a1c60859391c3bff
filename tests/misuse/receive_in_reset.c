/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receive is posted before the queue pair was moved to INIT.
 * Finding: wrong-state
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;

	make_ends(&ends, argc, argv, 0);
	if (clean)
		to_init(ends.b);
	MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	connect_ends(&ends);
	destroy_ends(&ends);
	return 0;
}
