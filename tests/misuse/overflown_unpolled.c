/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * More completions come than their queue has entries, and nobody polls it or destroys it before the process ends.
 * Finding: cq-too-small
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;

	make_ends(&ends, argc, argv, 0);
	flush_into_few_entries(&ends);
	if (!clean)
		return 0;
	destroy_ends(&ends);
	return 0;
}
