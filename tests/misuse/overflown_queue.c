/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * More completions come at once than their queue has entries.
 * Finding: cq-too-small
 */
#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_wc wc;

	make_ends(&ends, argc, argv, 0);
	flush_into_few_entries(&ends);
	if (!clean) {
		struct ibv_async_event event;

		MUST(!ibv_get_async_event(ends.context, &event));
		MUST(event.event_type == IBV_EVENT_CQ_ERR);
		ibv_ack_async_event(&event);
	}
	while (ibv_poll_cq(ends.receives, 1, &wc) > 0)
		;
	destroy_ends(&ends);
	return 0;
}
