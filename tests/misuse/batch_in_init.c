/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sends are posted by ibv_wr_complete() before the queue pair is connected.
 * Finding: wrong-state
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_qp_ex *qp;
	struct ibv_sge sge;

	make_ends(&ends, argc, argv, 0);
	MUST(!ibv_destroy_qp(ends.a));
	ends.a = make_extended_qp(&ends);
	sge = piece(&ends, 0, 64);
	if (clean) {
		connect_ends(&ends);
		MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 1));
		MUST(!post_recv(ends.b, piece(&ends, 1024, 64), 2));
	} else {
		to_init(ends.a);
	}
	qp = ibv_qp_to_qp_ex(ends.a);
	ibv_wr_start(qp);
	for (uint64_t wr_id = 4; wr_id < 6; ++wr_id) {
		qp->wr_id = wr_id;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(qp);
		ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
	}
	MUST((ibv_wr_complete(qp) == 0) == clean);
	if (clean) {
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	destroy_ends(&ends);
	return 0;
}
