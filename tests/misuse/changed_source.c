/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The next message is written into the memory of the one that was just posted.
 * Hint: buffer-in-flight
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, 0, 64);
	/* No sanitizer sees a race. */
	send_under_way(&ends, &sge);
	if (!clean)
		ends.memory[7] = 'x';
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	ends.memory[7] = 'x';
	destroy_ends(&ends);
	return 0;
}
