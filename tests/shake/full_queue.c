/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fills its send queue, and when the peer has answered it takes all for sent, and fills it again. The place of a request
 * is free when its completion was polled (ibv_post_send(3)). Clean, it counts those.
 */
#include "../misuse/misuse.h"

#define ROUNDS 30

static struct ends ends;

/* Sends and receives of `a` complete in one queue. */
static void make_a(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ends.sends,
		.recv_cq = ends.sends,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};

	MUST(!ibv_destroy_qp(ends.a));
	MUST(ends.a = ibv_create_qp(ends.pd, &init));
}

static void await_answer(void)
{
	struct ibv_wc wc;
	int answers = 0, sent = 0;

	/* The Sends of `a`, and the answer's of `b`. */
	while (answers == 0 || (clean && sent < DEPTH + 1)) {
		wc = next_of(ends.sends);
		MUST(wc.status == IBV_WC_SUCCESS);
		answers += wc.opcode == IBV_WC_RECV;
		sent += wc.opcode == IBV_WC_SEND;
	}
}

int main(int argc, char **argv)
{
	struct ibv_sge message;

	make_ends(&ends, argc, argv, 0);
	make_a();
	connect_ends(&ends);
	message = piece(&ends, 0, 8);
	for (int round = 0; round < ROUNDS; round++) {
		MUST(!post_recv(ends.a, piece(&ends, 64, 8), 0));
		for (uint64_t i = 0; i < DEPTH; i++)
			MUST(!post_recv(ends.b, piece(&ends, 128, 8), i));
		for (uint64_t i = 0; i < DEPTH; i++)
			MUST(!post_send(ends.a, send_of(&message, i)));
		for (int i = 0; i < DEPTH; i++)
			MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		MUST(!post_send(ends.b, send_of(&message, 0)));
		await_answer();
	}
	destroy_ends(&ends);
	return 0;
}
