/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two threads wait for events of one channel. One has handled a message, and waits again; the other one has taken the
 * next event and does other work for a while before it polls, as it may. Clean, it polls at once.
 * Hint: event-lost
 */
#include "misuse.h"

#include <pthread.h>
#include <unistd.h>

static struct ends ends;
static struct ibv_comp_channel *channel;
static pthread_barrier_t first_is_handled, second_is_taken;

static struct ibv_cq *take_event(void)
{
	struct ibv_cq *cq;
	void *context;

	MUST(!ibv_get_cq_event(channel, &cq, &context));
	return cq;
}

static void handle(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	MUST(!ibv_req_notify_cq(cq, 0));
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		MUST(wc.status == IBV_WC_SUCCESS);
	ibv_ack_cq_events(cq, 1);
}

static void *work(void *unused)
{
	handle(take_event());
	pthread_barrier_wait(&first_is_handled);
	pthread_barrier_wait(&second_is_taken);
	handle(take_event());
	return unused;
}

static void *work_slowly(void *unused)
{
	struct ibv_cq *cq;

	pthread_barrier_wait(&first_is_handled);
	cq = take_event();
	pthread_barrier_wait(&second_is_taken);
	if (!clean)
		sleep(4); /* a wait is for ever when it has lasted for a second */
	handle(cq);
	return unused;
}

static void send_one(void)
{
	struct ibv_sge sge = piece(&ends, SIZE / 2, 64);

	MUST(!post_send(ends.a, send_of(&sge, 1)));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	pthread_t worker, slow_worker;

	make_ends(&ends, argc, argv, 0);
	channel = make_channel(&ends);
	connect_ends(&ends);
	for (uint64_t i = 1; i <= 3; i++)
		MUST(!post_recv(ends.b, piece(&ends, 64 * i, 64), i));
	MUST(!ibv_req_notify_cq(ends.receives, 0));
	MUST(!pthread_barrier_init(&first_is_handled, NULL, 3));
	MUST(!pthread_barrier_init(&second_is_taken, NULL, 2));
	MUST(!pthread_create(&worker, NULL, work, NULL));
	MUST(!pthread_create(&slow_worker, NULL, work_slowly, NULL));
	send_one();
	pthread_barrier_wait(&first_is_handled);
	send_one();
	MUST(!pthread_join(slow_worker, NULL));
	send_one();
	MUST(!pthread_join(worker, NULL));
	destroy_ends_and_channel(&ends, channel);
	return 0;
}
