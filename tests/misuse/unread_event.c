/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Asks to be told when a shared receive queue has few receives left, and never reads the event.
 * Hint: event-unread
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_srq_init_attr queue = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_qp_init_attr init = { .cap = { DEPTH, 0, 1, 0, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_sge to, from;
	struct ibv_recv_wr receive = { .wr_id = 1, .sg_list = &to, .num_sge = 1 }, *bad;
	struct ibv_srq *srq;

	make_ends(&ends, argc, argv, 0);
	MUST(!ibv_destroy_qp(ends.b));
	MUST(srq = ibv_create_srq(ends.pd, &queue));
	init.send_cq = ends.sends;
	init.recv_cq = ends.receives;
	init.srq = srq;
	MUST(ends.b = ibv_create_qp(ends.pd, &init));
	to = piece(&ends, 0, 64);
	from = piece(&ends, 64, 64);
	for (int i = 0; i < 2; i++)
		MUST(!ibv_post_srq_recv(srq, &receive, &bad));
	MUST(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	connect_ends(&ends);
	MUST(!post_send(ends.a, send_of(&from, 1)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	MUST(next_received(&ends).status == IBV_WC_SUCCESS);
	if (clean) {
		struct ibv_async_event event;

		MUST(!ibv_get_async_event(ends.context, &event));
		MUST(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
		ibv_ack_async_event(&event);
	}
	MUST(!ibv_destroy_qp(ends.b));
	MUST(!ibv_destroy_srq(srq));
	ends.b = make_qp(&ends, 0);
	destroy_ends(&ends);
	return 0;
}
