/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A completion queue is destroyed before an event of it was acknowledged, by the only thread of the program: nobody can
 * do that any more. A signal ends it.
 * Finding: event-not-acknowledged
 */
#include "misuse.h"

#include <signal.h>
#include <unistd.h>

static void end(int unused)
{
	(void)unused;
	exit(0);
}

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	make_ends(&ends, argc, argv, 0);
	channel = make_channel(&ends);
	to_init(ends.b);
	MUST(!ibv_req_notify_cq(ends.receives, 0));
	complete_a_receive(&ends);
	MUST(!ibv_get_cq_event(channel, &cq, &context));
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
	if (clean) {
		ibv_ack_cq_events(cq, 1);
	} else {
		MUST(signal(SIGALRM, end) != SIG_ERR);
		alarm(5); /* ibv_destroy_cq is patient for one second */
	}
	destroy_ends_and_channel(&ends, channel);
	return 0;
}
