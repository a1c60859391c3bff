/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Registers one region after the other, and takes it that the peer's Write with the key of one that is gone is refused.
 * An adapter may give the key to the next region, and then that one is written to. Clean, the peer forgets the key.
 */
#include "../misuse/misuse.h"

static struct ends ends;
static char exposed[64], other[64];

static struct ibv_mr *expose(char *memory)
{
	struct ibv_mr *mr = ibv_reg_mr(ends.pd, memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	MUST(mr);
	return mr;
}

int main(int argc, char **argv)
{
	struct ibv_sge sge;
	struct ibv_send_wr write;
	struct ibv_mr *mr;
	uint32_t key;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	mr = expose(exposed);
	key = mr->rkey;
	MUST(!ibv_dereg_mr(mr));
	mr = expose(other);
	sge = piece(&ends, 0, 64);
	write = send_of(&sge, 0);
	write.opcode = IBV_WR_RDMA_WRITE;
	write.wr.rdma.remote_addr = (uintptr_t)other;
	write.wr.rdma.rkey = clean ? mr->rkey : key;
	memset(ends.memory, 'x', 64);
	MUST(!post_send(ends.a, write));
	if (clean) {
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	} else {
		struct ibv_sge message = piece(&ends, 0, 8);

		/* Whether the Write is refused is known when something behind it is answered. */
		MUST(!post_recv(ends.b, piece(&ends, 64, 8), 0));
		MUST(!post_send(ends.a, send_of(&message, 1)));
		MUST(next_received(&ends).status != IBV_WC_SUCCESS);
		MUST(other[0] == 0);
	}
	MUST(!ibv_dereg_mr(mr));
	destroy_ends(&ends);
	return 0;
}
