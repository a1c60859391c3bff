/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * No verb is a cancellation point: each of them returns in a thread whose cancellation is pending, and holds nothing
 * afterwards that the next call waits for.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *common;
static union ibv_gid gid; /* ibv_query_gid() is a cancellation point: it reads a file */
static char memory[4096];

static void step(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void make_queues(void)
{
	/* More than what of them is counted has room for without asking the kernel for more. */
	enum { MANY = 200 };
	struct ibv_cq *cq[MANY];

	for (int i = 0; i < MANY; i++)
		step((cq[i] = ibv_create_cq(device, 8, NULL, NULL, 0)) != NULL, "ibv_create_cq");
	for (int i = 0; i < MANY; i++)
		step(!ibv_destroy_cq(cq[i]), "ibv_destroy_cq");
}

static void make_queue_pair(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = common, .recv_cq = common, .qp_type = type,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	step(qp != NULL, "ibv_create_qp");
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ERR");
	attr.qp_state = IBV_QPS_RESET;
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RESET");
	step(!ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static void make_rc(void)
{
	make_queue_pair(IBV_QPT_RC);
}

static void make_ud(void)
{
	make_queue_pair(IBV_QPT_UD);
}

static void make_region(void)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	step(mr && !ibv_dereg_mr(mr), "ibv_reg_mr");
}

static void make_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	step(srq && !ibv_destroy_srq(srq), "ibv_create_srq");
}

static void make_address_handle(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1, .dgid = gid}};
	struct ibv_ah *ah;

	step((ah = ibv_create_ah(pd, &attr)) && !ibv_destroy_ah(ah), "ibv_create_ah");
}

static void be_refused(void)
{
	step(!ibv_create_cq(device, -1, NULL, NULL, 0), "ibv_create_cq of -1");
}

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {
	{"cq", make_queues}, {"rc", make_rc}, {"ud", make_ud}, {"mr", make_region}, {"srq", make_srq},
	{"ah", make_address_handle}, {"refused", be_refused},
};

static void *cancelled(void *argument)
{
	const struct part *part = argument;

	pthread_cancel(pthread_self());
	part->run();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	printf("%s returned\n", part->name);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr attr;
	pthread_t thread;
	void *result;

	setlinebuf(stdout);
	step(argc == 2 && list, "cancelled DEVICE");
	for (struct ibv_device **one = list; *one; one++)
		if (!strcmp(ibv_get_device_name(*one), argv[1]))
			device = ibv_open_device(*one);
	step(device && (pd = ibv_alloc_pd(device)) && (common = ibv_create_cq(device, 64, NULL, NULL, 0)), argv[1]);
	step(!ibv_query_device(device, &attr) && !ibv_query_gid(device, 1, 0, &gid), "ibv_query_gid");
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		/* Only one of the faces has it. */
		if (!attr.max_ah && (parts[i].run == make_ud || parts[i].run == make_address_handle))
			continue;
		alarm(20);
		step(!pthread_create(&thread, NULL, cancelled, (void *)&parts[i]), "pthread_create");
		pthread_join(thread, &result);
		if (result == PTHREAD_CANCELED)
			printf("%s was cancelled inside\n", parts[i].name);
		parts[i].run();
	}
	puts("done");
	return 0;
}
