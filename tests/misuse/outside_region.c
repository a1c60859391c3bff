/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The last bytes of a Send lie behind the end of the memory region.
 * Finding: local-protection
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	sge = piece(&ends, SIZE - 64, clean ? 64 : 80);
	MUST(!post_recv(ends.b, piece(&ends, 0, 128), 2));
	MUST(!post_send(ends.a, send_of(&sge, 1)));
	MUST((next_sent(&ends).status == IBV_WC_SUCCESS) == clean);
	destroy_ends(&ends);
	return 0;
}
