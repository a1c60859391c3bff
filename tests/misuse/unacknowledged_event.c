/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A completion queue is destroyed before an event of it was acknowledged; another thread does that at last, as it
 * may.
 * Hint: event-not-acknowledged
 */
#include "misuse.h"

#include <pthread.h>
#include <unistd.h>

static void *acknowledge_late(void *cq)
{
	sleep(3); /* ibv_destroy_cq is patient for one second */
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	pthread_t thread;

	make_ends(&ends, argc, argv, 0);
	channel = make_channel(&ends);
	to_init(ends.b);
	MUST(!ibv_req_notify_cq(ends.receives, 0));
	complete_a_receive(&ends);
	MUST(!ibv_get_cq_event(channel, &cq, &context));
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
	if (clean)
		ibv_ack_cq_events(cq, 1);
	else
		MUST(!pthread_create(&thread, NULL, acknowledge_late, cq));
	destroy_all_but_the_device(&ends);
	if (!clean)
		MUST(!pthread_join(thread, NULL));
	MUST(!ibv_destroy_comp_channel(channel));
	MUST(!ibv_close_device(ends.context));
	return 0;
}
