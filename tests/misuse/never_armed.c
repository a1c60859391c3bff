/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The program waits for the event of a completion without having asked for one. Another thread asks at last, so that
 * the program ends.
 * Finding: event-lost
 */
#include "misuse.h"

#include <pthread.h>
#include <unistd.h>

static void *arm_late(void *cq)
{
	sleep(4); /* the wait is for ever when it has lasted for a second */
	MUST(!ibv_req_notify_cq(cq, 0));
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
	if (clean)
		MUST(!ibv_req_notify_cq(ends.receives, 0));
	complete_a_receive(&ends);
	if (!clean)
		MUST(!pthread_create(&thread, NULL, arm_late, ends.receives));
	MUST(!ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	MUST(ibv_poll_cq(cq, 1, &wc) == 1);
	if (!clean)
		MUST(!pthread_join(thread, NULL));
	destroy_ends_and_channel(&ends, channel);
	return 0;
}
