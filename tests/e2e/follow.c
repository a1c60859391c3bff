// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * follow DEVICE ADDRESS: waits for the device, opens it, binds an rdma_cm id to the address and says what
 * happens until the device is removed; then lets go of everything and waits for the device to come back.
 * Uses nothing of uiwarp.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(bool right, const char *what)
{
	if (right)
		return;
	perror(what);
	exit(1);
}

/* The device of that name in a fresh list, or NULL. `first`: where "uiw_lo" is put, or compared with. */
static struct ibv_device *listed(const char *name, struct ibv_device **lo)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *found = NULL;

	must(list, "ibv_get_device_list");
	for (int i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			found = list[i];
		if (strcmp(ibv_get_device_name(list[i]), "uiw_lo") == 0) {
			must(!*lo || *lo == list[i], "uiw_lo is another ibv_device than before");
			*lo = list[i];
		}
	}
	/* Not freed: an ibv_device that is held by nobody may be reused for another. */
	return found;
}

static struct ibv_context *wait_and_open(const char *name, struct ibv_device **lo)
{
	struct ibv_device *device;
	struct ibv_context *context;

	while (!(device = listed(name, lo)))
		usleep(20000);
	context = ibv_open_device(device);
	must(context, "ibv_open_device");
	printf("found %s, GUID %016llx\n", name, (unsigned long long)be64toh(ibv_get_device_guid(device)));
	return context;
}

/* State, GIDs, and how many of them ibv_query_gid_table() finds. */
static void show_port(struct ibv_context *context)
{
	struct ibv_gid_entry entries[8];
	struct ibv_port_attr port;
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	must(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
	printf("%s,", ibv_port_state_str(port.state));
	for (int i = 0; i < port.gid_tbl_len; i++) {
		/* Once the device is not listed any more it fails, as with the kernel. */
		bool known = ibv_query_gid(context, 1, i, &gid) == 0;

		printf(" %s", known ? inet_ntop(AF_INET6, &gid, text, sizeof(text)) : "-");
	}
	printf(" (%zd)\n", ibv_query_gid_table(context, entries, 8, 0));
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct rdma_event_channel *channel;
	struct ibv_device *lo = NULL;
	struct ibv_async_event event;
	struct ibv_context *context;
	struct rdma_cm_event *cm_event;
	struct rdma_cm_id *id = NULL;

	must(argc == 3 && inet_pton(AF_INET, argv[2], &address.sin_addr) == 1, "follow DEVICE ADDRESS");
	setvbuf(stdout, NULL, _IOLBF, 0);
	listed(argv[1], &lo);
	printf("waiting\n");
	context = wait_and_open(argv[1], &lo);
	channel = rdma_create_event_channel();
	must(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
	must(rdma_bind_addr(id, (struct sockaddr *)&address) == 0, "rdma_bind_addr");
	must(id->verbs && strcmp(ibv_get_device_name(id->verbs->device), argv[1]) == 0, "bound elsewhere");
	printf("bound; ");
	show_port(context);

	do {
		must(ibv_get_async_event(context, &event) == 0, "ibv_get_async_event");
		printf("%s: ", ibv_event_type_str(event.event_type));
		show_port(context);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);

	must(!listed(argv[1], &lo), "still in the list");
	must(rdma_get_cm_event(channel, &cm_event) == 0, "rdma_get_cm_event");
	printf("%s\n", rdma_event_str(cm_event->event));
	must(cm_event->id == id, "of another id");
	rdma_ack_cm_event(cm_event);
	must(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	must(ibv_close_device(context) == 0, "ibv_close_device");

	printf("waiting again\n");
	context = wait_and_open(argv[1], &lo);
	must(ibv_close_device(context) == 0, "ibv_close_device");
	return 0;
}
