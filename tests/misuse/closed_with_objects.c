/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A device is closed with objects left.
 * Finding: leak
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;

	make_ends(&ends, argc, argv, 0);
	if (clean)
		destroy_ends(&ends);
	else
		MUST(!ibv_close_device(ends.context));
	return 0;
}
