/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An id of rdma_cm is destroyed before its queue pair.
 * Hint: destroy-order
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "misuse.h"

int main(int argc, char **argv)
{
	struct sockaddr_in self = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr init = { .cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	clean = argc > 1 && strcmp(argv[1], "clean") == 0;
	MUST(channel);
	MUST(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&self, 2000));
	MUST(!rdma_get_cm_event(channel, &event));
	MUST(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && id->verbs);
	MUST(!rdma_ack_cm_event(event));
	MUST(pd = ibv_alloc_pd(id->verbs));
	MUST(cq = ibv_create_cq(id->verbs, 2 * DEPTH, NULL, NULL, 0));
	init.send_cq = init.recv_cq = cq;
	MUST(!rdma_create_qp(id, pd, &init));
	qp = id->qp;
	if (clean)
		rdma_destroy_qp(id);
	MUST(!rdma_destroy_id(id));
	if (!clean)
		MUST(!ibv_destroy_qp(qp));
	MUST(!ibv_destroy_cq(cq));
	MUST(!ibv_dealloc_pd(pd));
	rdma_destroy_event_channel(channel);
	return 0;
}
