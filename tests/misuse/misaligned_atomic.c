/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The remote address of an atomic operation is no multiple of 8.
 * Finding: atomic-misaligned
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_ATOMIC);
	connect_ends(&ends);
	sge = piece(&ends, 0, 8);
	wr = send_of(&sge, 1);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = ((uintptr_t)ends.memory + 1024) / 8 * 8 + (clean ? 0 : 4);
	wr.wr.atomic.rkey = ends.mr->rkey;
	wr.wr.atomic.compare_add = 1;
	MUST((post_send(ends.a, wr) == 0) == clean);
	if (clean)
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	destroy_ends(&ends);
	return 0;
}
