/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Accepts a connection, and takes it that RDMA_CM_EVENT_ESTABLISHED is there when the peer's first message is. Nothing
 * promises that: the one comes from the connection manager, the other from the queue pair. Clean, it waits for both.
 */
#include "../misuse/misuse.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define ROUNDS 8

static char memory[64];
static struct rdma_addrinfo *where;

static void *connect_and_send(void *unused)
{
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 64 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	static char message[8] = "message";
	struct rdma_cm_id *id;
	struct ibv_wc wc;

	MUST(!rdma_create_ep(&id, where, NULL, &init));
	MUST(!rdma_connect(id, NULL));
	MUST(!rdma_post_send(id, NULL, message, sizeof message, NULL, IBV_SEND_INLINE));
	MUST(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	/* It waits for RDMA_CM_EVENT_DISCONNECTED. */
	MUST(!rdma_disconnect(id));
	rdma_destroy_ep(id);
	return unused;
}

static struct rdma_cm_id *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type expected, int timeout)
{
	struct pollfd waiting = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(poll(&waiting, 1, timeout) == 1);
	MUST(!rdma_get_cm_event(channel, &event));
	MUST(event->event == expected);
	id = event->id;
	MUST(!rdma_ack_cm_event(event));
	return id;
}

static void serve(struct rdma_event_channel *channel)
{
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 50000);
	const time_t end = time(NULL) + 60;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int count;

	MUST(!rdma_create_qp(id, NULL, &init));
	MUST(mr = rdma_reg_msgs(id, memory, sizeof memory));
	MUST(!rdma_post_recv(id, NULL, memory, sizeof memory, mr));
	MUST(!rdma_accept(id, NULL));
	while ((count = ibv_poll_cq(id->recv_cq, 1, &wc)) == 0 && time(NULL) < end)
		sched_yield();
	MUST(count == 1 && wc.status == IBV_WC_SUCCESS);
	/* 1 ms: on a busy machine it may be on its way, without --shake, too. */
	next_event(channel, RDMA_CM_EVENT_ESTABLISHED, clean ? 50000 : 1);
	next_event(channel, RDMA_CM_EVENT_DISCONNECTED, 50000);
	MUST(!rdma_dereg_mr(mr));
	rdma_destroy_qp(id);
	MUST(!rdma_destroy_id(id));
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	char port[16];

	clean = argc > 1 && strcmp(argv[1], "clean") == 0;
	MUST(channel = rdma_create_event_channel());
	MUST(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	MUST(!rdma_bind_addr(listener, (struct sockaddr *)&address));
	MUST(!rdma_listen(listener, 1));
	snprintf(port, sizeof port, "%d", ntohs(rdma_get_src_port(listener)));
	MUST(!rdma_getaddrinfo("127.0.0.1", port, &hints, &where));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		MUST(!pthread_create(&thread, NULL, connect_and_send, NULL));
		serve(channel);
		MUST(!pthread_join(thread, NULL));
	}
	rdma_freeaddrinfo(where);
	MUST(!rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
	return 0;
}
