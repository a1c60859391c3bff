/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A program whose memory runs out within libuiwarp and its provider: `failing once` lets the first allocation fail,
 * then the second, and so on, until all of it succeeds; `failing ever` lets all fail from the first on, from the
 * second on, and so on. Each call has to succeed or to say ENOMEM, and nothing may crash or wait for ever.
 *
 * The program's malloc() and free() are its own, aligned_alloc() is not: free() ends the process when it meets memory
 * that its malloc() did not give (`failing never` looks for that alone).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 20, BYTES = 64, ENOUGH = 5 /* wrong ones to show */ };
enum { DONE = 0, TOLD = 10, WRONG = 11 };

/* ---- malloc and free ---- */

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);

#define EXPORTED __attribute__((visibility("default")))

struct header {
	uint64_t size;
	uint64_t mark;
};
#define MARK 0x600df00d600df00dul

static uintptr_t begins[2], ends[2];     /* libuiwarp.so.0 and its provider */
static atomic_long allocations;		 /* of theirs */
static long first_failing = -1, last_failing = -1;

static int fails(void *caller)
{
	const uintptr_t at = (uintptr_t)caller;

	for (int i = 0; i < 2; i++) {
		if (at < begins[i] || at >= ends[i])
			continue;
		const long number = atomic_fetch_add(&allocations, 1);

		return number >= first_failing && number <= last_failing;
	}
	return 0;
}

static void *allocate(size_t size, void *caller)
{
	struct header *header;

	if (fails(caller) || !(header = __libc_malloc(size + sizeof(*header)))) {
		errno = ENOMEM;
		return NULL;
	}
	*header = (struct header){.size = size, .mark = MARK};
	return header + 1;
}

static struct header *header_of(void *memory)
{
	struct header *header = (struct header *)memory - 1;

	if (header->mark != MARK) {
		(void)!write(STDOUT_FILENO, "  free() of memory that malloc() did not give\n", 46);
		_exit(WRONG);
	}
	return header;
}

EXPORTED void *malloc(size_t size)
{
	return allocate(size, __builtin_return_address(0));
}

EXPORTED void *calloc(size_t count, size_t size)
{
	size_t all;
	void *memory = __builtin_mul_overflow(count, size, &all) ? NULL : allocate(all, __builtin_return_address(0));

	return memory ? memset(memory, 0, all) : NULL;
}

EXPORTED void free(void *memory)
{
	if (!memory)
		return;
	struct header *header = header_of(memory);

	header->mark = 0;
	__libc_free(header);
}

EXPORTED void *realloc(void *memory, size_t size)
{
	void *grown = allocate(size, __builtin_return_address(0));

	if (!grown || !memory)
		return grown;
	const size_t before = header_of(memory)->size;

	memcpy(grown, memory, before < size ? before : size);
	free(memory);
	return grown;
}

static int find_libraries(struct dl_phdr_info *info, size_t size, void *data)
{
	const int which = strstr(info->dlpi_name, "/libuiwarp.so") ? 0 : strstr(info->dlpi_name, "/libuiwarp-rdmav") ? 1 : -1;

	(void)size;
	(void)data;
	for (int i = 0; which >= 0 && i < info->dlpi_phnum; i++) {
		const uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && end > ends[which])
			ends[which] = end;
		begins[which] = info->dlpi_addr;
	}
	return 0;
}

/* ---- what a program does ---- */

static const char *doing = "nothing";

static void say(const char *what)
{
	printf("  %s: %s: %s\n", doing, what, strerror(errno));
	fflush(stdout);
}

/* A call that failed for want of memory ends what can be tried. */
static void step(int good, const char *what)
{
	doing = what;
	if (good)
		return;
	/*
	 * libibverbs and librdmacm have words of their own for a device file that does not open, and who accepts may
	 * find that the other end has given up.
	 */
	const int told = errno == ENOMEM || (errno == ENOENT && !strcmp(what, "ibv_open_device")) ||
			 (errno == ENODEV && !strncmp(what, "rdma_", 5)) ||
			 (errno == ECONNRESET && !strcmp(what, "rdma_accept"));

	say(told ? "told" : "not the reason");
	_exit(told ? TOLD : WRONG);
}

static void stop(const char *why)
{
	printf("  %s: %s\n", doing, why);
	fflush(stdout);
	_exit(TOLD);
}

static struct ibv_context *open_lo(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context = NULL;

	for (int i = 0; list && i < count; i++) {
		if (strcmp(ibv_get_device_name(list[i]), "uiw_lo"))
			continue;
		context = ibv_open_device(list[i]);
		step(context != NULL, "ibv_open_device");
	}
	if (!context)
		stop("no device");
	ibv_free_device_list(list);
	return context;
}

/* Every kind of object, made and destroyed. */
static void objects(void)
{
	static char memory[BYTES];
	struct ibv_context *context = open_lo();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);

	step(channel != NULL, "ibv_create_comp_channel");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	step(pd != NULL, "ibv_alloc_pd");
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	step(mr != NULL, "ibv_reg_mr");
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	step(mw != NULL, "ibv_alloc_mw");
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, channel, 0);
	step(cq != NULL, "ibv_create_cq");
	errno = ibv_resize_cq(cq, 4000);
	step(errno == 0, "ibv_resize_cq");
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	step(srq != NULL, "ibv_create_srq");
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {.max_send_wr = 16, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	step(qp != NULL, "ibv_create_qp");
	errno = ibv_destroy_qp(qp);
	step(errno == 0, "ibv_destroy_qp");
	errno = ibv_destroy_srq(srq);
	step(errno == 0, "ibv_destroy_srq");
	errno = ibv_destroy_cq(cq);
	step(errno == 0, "ibv_destroy_cq");
	errno = ibv_dealloc_mw(mw);
	step(errno == 0, "ibv_dealloc_mw");
	errno = ibv_dereg_mr(mr);
	step(errno == 0, "ibv_dereg_mr");
	errno = ibv_dealloc_pd(pd);
	step(errno == 0, "ibv_dealloc_pd");
	errno = ibv_destroy_comp_channel(channel);
	step(errno == 0, "ibv_destroy_comp_channel");
	errno = ibv_close_device(context);
	step(errno == 0, "ibv_close_device");
}

/* Two ids of this process. An event that is none of the good ones ends the attempt, rightly. */
static struct rdma_cm_id *event_of(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;

	step(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->event != wanted)
		stop(rdma_event_str(event->event));
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	return id;
}

/* Where the next event is: at `one` if at both. */
static struct rdma_event_channel *first_of(struct rdma_event_channel *one, struct rdma_event_channel *other)
{
	struct pollfd either[2] = {{.fd = one->fd, .events = POLLIN}, {.fd = other->fd, .events = POLLIN}};

	step(poll(either, 2, -1) > 0, "poll");
	return either[0].revents ? one : other;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	step(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	step(got == 1, "ibv_poll_cq");
	if (wc.status != IBV_WC_SUCCESS)
		stop(ibv_wc_status_str(wc.status));
}

static void connection(void)
{
	static char sent[BYTES] = "a message", received[BYTES];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_event_channel *passive = rdma_create_event_channel(), *active = rdma_create_event_channel();

	step(passive && active, "rdma_create_event_channel");
	step(!rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	step(!rdma_bind_addr(listener, (struct sockaddr *)&address), "rdma_bind_addr");
	step(!rdma_listen(listener, 1), "rdma_listen");
	address.sin_port = rdma_get_src_port(listener);
	step(!rdma_create_id(active, &client, NULL, RDMA_PS_TCP), "rdma_create_id");
	step(!rdma_resolve_addr(client, NULL, (struct sockaddr *)&address, 1000), "rdma_resolve_addr");
	event_of(active, RDMA_CM_EVENT_ADDR_RESOLVED);
	step(!rdma_resolve_route(client, 1000), "rdma_resolve_route");
	event_of(active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(client);
	step(!rdma_connect(client, &param), "rdma_connect");

	if (first_of(passive, active) == active)
		event_of(active, RDMA_CM_EVENT_ESTABLISHED);
	server = event_of(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(server);

	struct ibv_mr *from = ibv_reg_mr(client->pd, sent, sizeof(sent), 0);
	struct ibv_mr *to = from ? ibv_reg_mr(server->pd, received, sizeof(received), IBV_ACCESS_LOCAL_WRITE) : NULL;
	step(from && to, "ibv_reg_mr");
	struct ibv_sge source = {.addr = (uintptr_t)sent, .length = sizeof(sent), .lkey = from->lkey};
	struct ibv_sge sink = {.addr = (uintptr_t)received, .length = sizeof(received), .lkey = to->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sink, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;

	errno = ibv_post_recv(server->qp, &receive, &bad_receive);
	step(errno == 0, "ibv_post_recv");
	step(!rdma_accept(server, &param), "rdma_accept");
	/* A client whose request is not answered comes once more, for which this server does not wait. */
	if (first_of(passive, active) == passive) {
		event_of(passive, RDMA_CM_EVENT_ESTABLISHED);
		event_of(active, RDMA_CM_EVENT_ESTABLISHED);
	} else {
		event_of(active, RDMA_CM_EVENT_ESTABLISHED);
		event_of(passive, RDMA_CM_EVENT_ESTABLISHED);
	}
	errno = ibv_post_send(client->qp, &send, &bad_send);
	step(errno == 0, "ibv_post_send");
	completion(client->send_cq);
	completion(server->recv_cq);
	if (memcmp(sent, received, sizeof(sent))) {
		say("something else arrived");
		_exit(WRONG);
	}
	step(!rdma_disconnect(client), "rdma_disconnect");
	event_of(active, RDMA_CM_EVENT_DISCONNECTED);
	event_of(passive, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(client);
	rdma_destroy_qp(server);
	step(!ibv_dereg_mr(from) && !ibv_dereg_mr(to), "ibv_dereg_mr");
	step(!rdma_destroy_id(client) && !rdma_destroy_id(server) && !rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(active);
	rdma_destroy_event_channel(passive);
}

/* ---- attempts ---- */

/* In a child of its own, from its first look at the devices on. `*reached`: an allocation was let fail. */
static int attempt(void (*scenario)(void), long first, long last, int *reached)
{
	int fds[2], status;
	pid_t child;

	*reached = 0;
	fflush(stdout);
	if (pipe(fds))
		return WRONG;
	child = fork();
	if (child == 0) {
		alarm(SECONDS);
		/* Loads them. */
		ibv_free_device_list(ibv_get_device_list(NULL));
		dl_iterate_phdr(find_libraries, NULL);
		if (!ends[0] || !ends[1])
			_exit(WRONG);
		first_failing = first;
		last_failing = last;
		atomic_store(&allocations, 0);
		/* Before anything fails, since a crash says nothing: how far it will come is not known yet. */
		scenario();
		const char far = atomic_load(&allocations) > first;
		(void)!write(fds[1], &far, 1);
		_exit(DONE);
	}
	close(fds[1]);
	char far = 1; /* whoever stopped had met it */
	const int said = read(fds[0], &far, 1) == 1;
	close(fds[0]);
	*reached = !said || far;
	if (child < 0 || waitpid(child, &status, 0) != child)
		return WRONG;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("  ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WRONG;
}

static int try(const char *what, void (*scenario)(void), const char *how)
{
	int wrong = 0, reached = 1;
	long number;

	if (!strcmp(how, "never"))
		return attempt(scenario, -1, -1, &reached) != DONE;
	for (number = 0; reached && wrong < ENOUGH; number++) {
		const int result = attempt(scenario, number, strcmp(how, "ever") ? number : INT32_MAX, &reached);

		if (result != DONE && result != TOLD) {
			printf("%s, allocation %ld: WRONG\n", what, number);
			wrong++;
		}
	}
	printf("%s: %ld allocations\n", what, number - 1);
	return wrong || number < 5;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: failing never|once|ever\n");
		return 2;
	}
	const int first = try("objects", objects, argv[1]);

	return try("connection", connection, argv[1]) || first;
}
