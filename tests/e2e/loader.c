// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A program that is not linked with libibverbs and librdmacm but loads them, as language bindings do.
//
//   uiwarp-loader local|deep          status 0: the device works, and went on to while processes were forked
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *verbs, *rdmacm;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void *load(const char *name, int flags)
{
	void *library = dlopen(name, flags);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

// FROM(verbs, ibv_alloc_pd)(context): the function of that library, with the type it is declared with.
#define FROM(library, name) ((__typeof__(&(name)))dlsym(library, #name))

static struct ibv_context *open_lo(void)
{
	struct ibv_context *context = NULL;
	int count = 0;
	struct ibv_device **list = FROM(verbs, ibv_get_device_list)(&count);

	for (int i = 0; list && i < count; i++) {
		if (strcmp(FROM(verbs, ibv_get_device_name)(list[i]), "uiw_lo") == 0)
			context = FROM(verbs, ibv_open_device)(list[i]);
	}
	if (!context)
		fail("no device uiw_lo");
	FROM(verbs, ibv_free_device_list)(list);
	return context;
}

// A completion channel is the one object that comes from the virtual kernel and not from the provider.
static void use(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = FROM(verbs, ibv_create_comp_channel)(context);
	struct ibv_pd *pd = FROM(verbs, ibv_alloc_pd)(context);
	struct ibv_cq *cq = channel ? FROM(verbs, ibv_create_cq)(context, 4, NULL, channel, 0) : NULL;
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq };
	struct ibv_qp *qp = pd && cq ? FROM(verbs, ibv_create_qp)(pd, &init) : NULL;

	if (!qp)
		fail("no queue pair");
	if (FROM(verbs, ibv_destroy_qp)(qp) || FROM(verbs, ibv_destroy_cq)(cq) || FROM(verbs, ibv_dealloc_pd)(pd) ||
	    FROM(verbs, ibv_destroy_comp_channel)(channel))
		fail("what was made cannot be destroyed");
}

static void bind_to_lo(struct rdma_event_channel *events)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_cm_id *id;

	if (FROM(rdmacm, rdma_create_id)(events, &id, NULL, RDMA_PS_TCP) ||
	    FROM(rdmacm, rdma_bind_addr)(id, (struct sockaddr *)&address) || FROM(rdmacm, rdma_listen)(id, 1))
		fail("cannot listen");
	if (FROM(rdmacm, rdma_destroy_id)(id))
		fail("cannot stop to listen");
}

static void expect_success(pid_t child, const char *what)
{
	int status = 0;

	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("fork");
	if (status != 0) {
		fprintf(stderr, "%s: wait status %x\n", what, status);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const int flags = argc > 1 && strcmp(argv[1], "deep") == 0 ? RTLD_NOW | RTLD_DEEPBIND : RTLD_NOW | RTLD_LOCAL;
	struct rdma_event_channel *events;
	struct ibv_context *context;
	pid_t child;

	verbs = load("libibverbs.so.1", flags);
	rdmacm = load("librdmacm.so.1", flags);
	context = open_lo();
	use(context);
	events = FROM(rdmacm, rdma_create_event_channel)();
	if (!events)
		fail("rdma_create_event_channel");
	bind_to_lo(events);
	if (argc > 2) // the program below: it has come so far
		return 0;

	child = fork();
	if (child == 0) {
		// What a child does that wants none of it.
		closefrom(STDERR_FILENO + 1);
		_exit(0);
	}
	expect_success(child, "a child that closes everything");

	child = fork();
	if (child == 0) {
		char *arguments[] = { argv[0], argv[1], "again", NULL };

		execv("/proc/self/exe", arguments);
		_exit(1);
	}
	expect_success(child, "a program that opens the device itself");

	use(context);
	bind_to_lo(events);
	FROM(rdmacm, rdma_destroy_event_channel)(events);
	return FROM(verbs, ibv_close_device)(context);
}
