// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections of this process with itself: one channel per end, so that each end's events stay in order.
#include "leak.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

enum { EVENT_MS = 15000 };

static const char reason[] = "not today";

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

struct pair {
	struct end server, client;
	struct rdma_cm_id *child;
};

static int complain(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	return -1;
}

/*
 * Waits for the next event, which must be `wanted`. `child` gets the new id of a request; `data` must be
 * the beginning of the event's private data.
 */
static int expect_event(struct end *end, enum rdma_cm_event_type wanted, struct rdma_cm_id **child, const char *data)
{
	struct pollfd ready = { .fd = end->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int bad;

	if (poll(&ready, 1, EVENT_MS) != 1) {
		printf("no event within %d ms, wanted %s\n", EVENT_MS, rdma_event_str(wanted));
		return -1;
	}
	if (rdma_get_cm_event(end->channel, &event))
		return complain("rdma_get_cm_event");
	bad = event->event != wanted;
	if (bad)
		printf("event %s, status %d; wanted %s\n", rdma_event_str(event->event), event->status,
		       rdma_event_str(wanted));
	if (!bad && child)
		*child = event->id;
	if (!bad && data && (event->param.conn.private_data_len < strlen(data) ||
			     memcmp(event->param.conn.private_data, data, strlen(data)))) {
		printf("the private data did not arrive\n");
		bad = 1;
	}
	rdma_ack_cm_event(event);
	return bad ? -1 : 0;
}

static int create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	return rdma_create_qp(id, NULL, &attr);
}

static int start_listening(struct end *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	server->channel = rdma_create_event_channel();
	if (!server->channel)
		return complain("rdma_create_event_channel");
	if (rdma_create_id(server->channel, &server->id, NULL, RDMA_PS_TCP))
		return complain("rdma_create_id");
	if (rdma_bind_addr(server->id, (struct sockaddr *)&address))
		return complain("rdma_bind_addr");
	if (rdma_listen(server->id, 4))
		return complain("rdma_listen");
	return 0;
}

/* Brings the client to the point where the server has its request. */
static int start_connecting(struct pair *pair)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct end *client = &pair->client;

	address.sin_port = rdma_get_src_port(pair->server.id);
	client->channel = rdma_create_event_channel();
	if (!client->channel || rdma_create_id(client->channel, &client->id, NULL, RDMA_PS_TCP))
		return complain("rdma_create_id");
	if (rdma_resolve_addr(client->id, NULL, (struct sockaddr *)&address, 2000))
		return complain("rdma_resolve_addr");
	if (expect_event(client, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL))
		return -1;
	if (rdma_resolve_route(client->id, 2000))
		return complain("rdma_resolve_route");
	if (expect_event(client, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL))
		return -1;
	if (create_qp(client->id))
		return complain("rdma_create_qp");
	if (rdma_connect(client->id, &param))
		return complain("rdma_connect");
	return 0;
}

static void destroy_end(struct end *end)
{
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->id)
		rdma_destroy_id(end->id);
	if (end->channel)
		rdma_destroy_event_channel(end->channel);
}

static void destroy_child(struct pair *pair)
{
	if (!pair->child)
		return;
	if (pair->child->qp)
		rdma_destroy_qp(pair->child);
	rdma_destroy_id(pair->child);
	pair->child = NULL;
}

static int finish(struct pair *pair, int bad)
{
	destroy_child(pair);
	destroy_end(&pair->client);
	destroy_end(&pair->server);
	return bad ? 1 : 0;
}

int leak_cycle_listen(void)
{
	struct pair pair = { 0 };

	return finish(&pair, start_listening(&pair.server));
}

static int accept_and_disconnect(struct pair *pair)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };

	if (expect_event(&pair->server, RDMA_CM_EVENT_CONNECT_REQUEST, &pair->child, NULL))
		return -1;
	if (create_qp(pair->child))
		return complain("rdma_create_qp");
	if (rdma_accept(pair->child, &param))
		return complain("rdma_accept");
	if (expect_event(&pair->client, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL) ||
	    expect_event(&pair->server, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL))
		return -1;
	if (rdma_disconnect(pair->client.id))
		return complain("rdma_disconnect");
	return expect_event(&pair->server, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL) ||
	       expect_event(&pair->client, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL);
}

int leak_cycle_connect(void)
{
	struct pair pair = { 0 };

	return finish(&pair, start_listening(&pair.server) || start_connecting(&pair) || accept_and_disconnect(&pair));
}

static int destroy_before_accept(struct pair *pair)
{
	struct pollfd ready = { .fd = pair->server.channel->fd, .events = POLLIN };

	/* The request waits in the channel, unfetched: it goes with its listener. */
	if (poll(&ready, 1, EVENT_MS) != 1) {
		printf("no connection request within %d ms\n", EVENT_MS);
		return -1;
	}
	rdma_destroy_id(pair->server.id);
	pair->server.id = NULL;
	return expect_event(&pair->client, RDMA_CM_EVENT_REJECTED, NULL, NULL);
}

int leak_cycle_pending(void)
{
	struct pair pair = { 0 };

	return finish(&pair, start_listening(&pair.server) || start_connecting(&pair) || destroy_before_accept(&pair));
}

static int reject(struct pair *pair)
{
	if (expect_event(&pair->server, RDMA_CM_EVENT_CONNECT_REQUEST, &pair->child, NULL))
		return -1;
	if (rdma_reject(pair->child, reason, strlen(reason)))
		return complain("rdma_reject");
	return expect_event(&pair->client, RDMA_CM_EVENT_REJECTED, NULL, reason);
}

int leak_cycle_reject(void)
{
	struct pair pair = { 0 };

	return finish(&pair, start_listening(&pair.server) || start_connecting(&pair) || reject(&pair));
}
