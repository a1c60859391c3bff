/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A program ends and has not destroyed its rdma_cm_id, so that librdmacm keeps the protection domain that it has made.
 * The device it keeps in any case.
 * Hint: leak
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "misuse.h"

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	clean = argc > 1 && strcmp(argv[1], "clean") == 0;
	MUST(channel);
	MUST(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000));
	MUST(!rdma_get_cm_event(channel, &event));
	MUST(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && id->verbs);
	rdma_ack_cm_event(event);
	if (!clean)
		return 0;
	MUST(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	return 0;
}
