/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory windows are bound that were destroyed, and one to a memory region that was deregistered.
 * Finding: used-after-destroy
 */
#include "misuse.h"

static struct ends ends;

static int bind(struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_mw_bind bind = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED };

	bind.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)ends.memory, 64, IBV_ACCESS_REMOTE_WRITE };
	return ibv_bind_mw(ends.a, mw, &bind);
}

static void bind_of_type_2(struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)ends.memory, 64, IBV_ACCESS_REMOTE_WRITE };
	MUST(!post_send(ends.a, wr));
	MUST((next_sent(&ends).status == IBV_WC_SUCCESS) == clean);
}

int main(int argc, char **argv)
{
	enum { FIRST, REGION_GONE, SECOND };
	struct ibv_mw *mw;
	struct ibv_mr *mr;

	for (int what = FIRST; what <= SECOND; ++what) {
		make_ends(&ends, argc, argv, 0);
		connect_ends(&ends);
		MUST(mr = ibv_reg_mr(ends.pd, ends.memory, SIZE,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND));
		MUST(mw = ibv_alloc_mw(ends.pd, what == SECOND ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1));
		if (!clean && what != REGION_GONE)
			MUST(!ibv_dealloc_mw(mw));
		if (!clean && what == REGION_GONE)
			MUST(!ibv_dereg_mr(mr));
		if (what == SECOND)
			bind_of_type_2(mw, mr);
		else
			MUST((bind(mw, mr) == 0) == (clean || what == REGION_GONE));
		if (what != SECOND && (clean || what == REGION_GONE))
			MUST((next_sent(&ends).status == IBV_WC_SUCCESS) == clean);
		if (clean || what == REGION_GONE)
			MUST(!ibv_dealloc_mw(mw));
		if (clean || what != REGION_GONE)
			MUST(!ibv_dereg_mr(mr));
		destroy_ends(&ends);
	}
	return 0;
}
