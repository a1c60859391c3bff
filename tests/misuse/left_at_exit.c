/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A program ends and has not destroyed what it made.
 * Hint: leak
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;

	make_ends(&ends, argc, argv, 0);
	if (clean)
		destroy_ends(&ends);
	return 0;
}
