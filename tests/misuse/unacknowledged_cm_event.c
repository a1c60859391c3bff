/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An id of rdma_cm is destroyed before an event of it was acknowledged; another thread does that at last, as it
 * may.
 * Hint: event-not-acknowledged
 */
#include "misuse.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

static void *acknowledge_late(void *event)
{
	sleep(4); /* rdma_destroy_id has waited for more than a second by then */
	MUST(!rdma_ack_cm_event(event));
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in self = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	pthread_t thread;

	clean = argc > 1 && strcmp(argv[1], "clean") == 0;
	MUST(channel);
	MUST(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&self, 2000));
	MUST(!rdma_get_cm_event(channel, &event));
	MUST(event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	if (clean)
		MUST(!rdma_ack_cm_event(event));
	else
		MUST(!pthread_create(&thread, NULL, acknowledge_late, event));
	MUST(!rdma_destroy_id(id));
	if (!clean)
		MUST(!pthread_join(thread, NULL));
	rdma_destroy_event_channel(channel);
	return 0;
}
