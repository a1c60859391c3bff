/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Waits for the event of each message, polls until the queue is empty, and asks for the next event. It does not poll
 * once more behind that: a message that has come in between raises no event (ibv_req_notify_cq(3)). The peer sends the
 * next message when the last one was polled, so nothing else wakes the program.
 */
#include "../misuse/misuse.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define MESSAGES 40

static struct ends ends;
static atomic_int received;

static void *send_all(void *unused)
{
	struct ibv_sge sge = piece(&ends, SIZE / 2, 64);

	for (int i = 0; i < MESSAGES; i++) {
		while (atomic_load(&received) < i)
			sched_yield();
		MUST(!post_send(ends.a, send_of(&sge, (uint64_t)i)));
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
	}
	return unused;
}

static void poll_all(void)
{
	struct ibv_wc wc;
	int count;

	while ((count = ibv_poll_cq(ends.receives, 1, &wc)) > 0) {
		MUST(wc.status == IBV_WC_SUCCESS);
		MUST(!post_recv(ends.b, piece(&ends, 0, 64), 0));
		atomic_fetch_add(&received, 1);
	}
	MUST(count == 0);
}

int main(int argc, char **argv)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	void *context;
	pthread_t thread;

	make_ends(&ends, argc, argv, 0);
	channel = make_channel(&ends);
	connect_ends(&ends);
	MUST(!post_recv(ends.b, piece(&ends, 0, 64), 0));
	MUST(!post_recv(ends.b, piece(&ends, 64, 64), 0));
	MUST(!ibv_req_notify_cq(ends.receives, 0));
	MUST(!pthread_create(&thread, NULL, send_all, NULL));
	while (atomic_load(&received) < MESSAGES) {
		struct pollfd waiting = { .fd = channel->fd, .events = POLLIN };

		MUST(poll(&waiting, 1, clean ? 50000 : 5000) == 1);
		MUST(!ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		poll_all();
		MUST(!ibv_req_notify_cq(cq, 0));
		if (clean)
			poll_all();
	}
	MUST(!pthread_join(thread, NULL));
	destroy_ends_and_channel(&ends, channel);
	return 0;
}
