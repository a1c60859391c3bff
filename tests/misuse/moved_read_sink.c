/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory is moved by mremap() while an RDMA Read is to bring bytes there.
 * Finding: memory-unmapped
 */
#define _GNU_SOURCE /* mremap() */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	void *more = map_pages(SIZE);
	void *other = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ);
	MUST(other != MAP_FAILED);
	MUST(mr = ibv_reg_mr(ends.pd, more, SIZE, IBV_ACCESS_LOCAL_WRITE));
	connect_in_vain(&ends);
	sge = piece_of(mr, 0, 64);
	wr = rdma_of(&ends, IBV_WR_RDMA_READ, &sge, 0, 1);
	MUST(!post_send(ends.a, wr));
	if (!clean)
		MUST(mremap(more, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
	MUST(!ibv_modify_qp(ends.a, &attr, IBV_QP_STATE));
	MUST(next_sent(&ends).status == IBV_WC_WR_FLUSH_ERR);
	MUST(!ibv_dereg_mr(mr));
	if (clean)
		MUST(mremap(more, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
	MUST(!munmap(other, SIZE));
	destroy_ends(&ends);
	return 0;
}
