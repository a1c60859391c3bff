/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two messages come, of which one event tells. The program polls one of them only, asks for the next event, and waits
 * for it. Another thread ends that by a third message, so that the program ends.
 * Finding: event-lost
 */
#include "misuse.h"

#include <pthread.h>
#include <unistd.h>

static struct ends ends;

static void send_one(uint64_t wr_id)
{
	struct ibv_sge sge = piece(&ends, SIZE / 2, 64);

	MUST(!post_send(ends.a, send_of(&sge, wr_id)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
}

/* A Read is answered behind the messages before it. */
static void await_arrival(void)
{
	struct ibv_sge sge = piece(&ends, 0, 8);

	MUST(!post_send(ends.a, rdma_of(&ends, IBV_WR_RDMA_READ, &sge, SIZE / 2, 10)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
}

static void *send_late(void *unused)
{
	sleep(4); /* the wait is for ever when it has lasted for a second */
	send_one(3);
	return unused;
}

int main(int argc, char **argv)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	pthread_t thread;
	int count = 0;

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	channel = make_channel(&ends);
	connect_ends(&ends);
	for (uint64_t i = 1; i <= 3; i++)
		MUST(!post_recv(ends.b, piece(&ends, 64 * i, 64), i));
	send_one(1);
	send_one(2);
	await_arrival();
	MUST(!ibv_req_notify_cq(ends.receives, 0)); /* at once, of what waits */
	MUST(!ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	if (clean)
		send_one(3);
	else
		MUST(!pthread_create(&thread, NULL, send_late, NULL));
	MUST(!ibv_req_notify_cq(cq, 0));
	for (int most = clean ? DEPTH : 1; count < most && ibv_poll_cq(cq, 1, &wc) > 0; count++)
		;
	while (clean && count < 3)
		count += ibv_poll_cq(cq, 1, &wc);
	if (!clean) {
		MUST(!ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		MUST(!pthread_join(thread, NULL));
		while (count < 3)
			count += ibv_poll_cq(cq, 1, &wc);
	}
	destroy_ends_and_channel(&ends, channel);
	return 0;
}
