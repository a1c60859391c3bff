/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * With as few descriptors as are allowed: lists devices, opens one, makes completion channels, listens and connects
 * over loopback, for every number from 3 on until all of it succeeds. Each step has to succeed or to say that there
 * are too many open files; nothing may crash or wait for ever.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, SECONDS = 30 };

/* What a child ends with: everything went well, or a step said rightly why it did not. */
enum { DONE = 0, TOLD = 10, WRONG = 11 };

static void step(int good, const char *what)
{
	const int error = errno;

	if (good)
		return;
	/* libibverbs and librdmacm do not say why a list is empty, and take what they cannot open for missing. */
	const int right = error == EMFILE || error == ENFILE || error == ENODEV;
	printf("  %s: %s%s\n", what, strerror(error), right ? "" : ": not the reason");
	fflush(stdout);
	_exit(right ? TOLD : WRONG);
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;

	step(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->event == wanted)
		return event;
	/* Without a descriptor at the other end a connection cannot come about. */
	printf("  %s instead of %s, status %d\n", rdma_event_str(event->event), rdma_event_str(wanted), event->status);
	fflush(stdout);
	errno = event->status < 0 ? -event->status : event->status;
	step(0, "the event");
	return NULL;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	step(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void verbs(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_device *lo = NULL;
	struct ibv_pd *pd;
	int count = 0;

	list = ibv_get_device_list(&count);
	if (!list && errno == ENOSYS)
		errno = ENODEV;
	step(list != NULL, "ibv_get_device_list");
	for (int i = 0; i < count; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "uiw_lo"))
			lo = list[i];
	errno = ENODEV;
	step(lo != NULL, "uiw_lo");
	errno = 0;
	context = ibv_open_device(lo);
	step(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	channel = ibv_create_comp_channel(context);
	step(channel != NULL, "ibv_create_comp_channel");
	pd = ibv_alloc_pd(context);
	step(pd != NULL, "ibv_alloc_pd");
	step(ibv_create_cq(context, 1, NULL, channel, 0) != NULL, "ibv_create_cq");
}

static void connection(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct rdma_event_channel *passive, *active;
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_conn_param param = {0};

	passive = rdma_create_event_channel();
	step(passive != NULL, "rdma_create_event_channel");
	active = rdma_create_event_channel();
	step(active != NULL, "rdma_create_event_channel");
	step(!rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	step(!rdma_bind_addr(listener, (struct sockaddr *)&address), "rdma_bind_addr");
	step(!rdma_listen(listener, 1), "rdma_listen");
	address.sin_port = rdma_get_src_port(listener);
	step(!rdma_create_id(active, &client, NULL, RDMA_PS_TCP), "rdma_create_id");
	step(!rdma_resolve_addr(client, NULL, (struct sockaddr *)&address, 1000), "rdma_resolve_addr");
	rdma_ack_cm_event(next_event(active, RDMA_CM_EVENT_ADDR_RESOLVED));
	step(!rdma_resolve_route(client, 1000), "rdma_resolve_route");
	rdma_ack_cm_event(next_event(active, RDMA_CM_EVENT_ROUTE_RESOLVED));
	make_qp(client);
	step(!rdma_connect(client, &param), "rdma_connect");

	/* The server's socket is accepted as soon as there is a descriptor for it, which may be never. */
	struct pollfd either[2] = {{.fd = passive->fd, .events = POLLIN}, {.fd = active->fd, .events = POLLIN}};

	errno = EMFILE;
	step(poll(either, 2, 2000) > 0, "a connection");
	if (!(either[0].revents & POLLIN))
		next_event(active, RDMA_CM_EVENT_ESTABLISHED);
	server = next_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST)->id;
	make_qp(server);
	step(!rdma_accept(server, &param), "rdma_accept");
	next_event(active, RDMA_CM_EVENT_ESTABLISHED);
	next_event(passive, RDMA_CM_EVENT_ESTABLISHED);
}

static int with(unsigned descriptors, void (*scenario)(void))
{
	const struct rlimit limit = {.rlim_cur = descriptors, .rlim_max = descriptors};
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(SECONDS);
		if (setrlimit(RLIMIT_NOFILE, &limit))
			_exit(WRONG);
		scenario();
		_exit(DONE);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return WRONG;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("  ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WRONG;
}

static int try(const char *what, void (*scenario)(void))
{
	int wrong = 0;

	for (unsigned descriptors = 3; descriptors <= MOST; descriptors++) {
		printf("%s with %u descriptors\n", what, descriptors);
		switch (with(descriptors, scenario)) {
		case DONE:
			printf("%s: %u descriptors are enough\n", what, descriptors);
			return wrong;
		case TOLD:
			break;
		default:
			wrong = 1;
		}
	}
	printf("%s: %d descriptors are not enough\n", what, MOST);
	return 1;
}

int main(void)
{
	const int first = try("verbs", verbs);

	return try("connection", connection) || first;
}
