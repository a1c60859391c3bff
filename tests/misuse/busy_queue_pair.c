/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A queue pair is destroyed that is still in a multicast group, again and again, while another thread takes memory away:
 * --check looks at all queue pairs then, and must not wait for itself.
 * Finding: destroy-order
 * Face: roce
 */
#include <errno.h>
#include <pthread.h>

#include "misuse.h"

#define QUEUE_PAIRS 8
#define SECONDS 2

static struct ends ends;
static bool over;

/* Another page comes in the place of one that is registered. */
static void *replace(void *page)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		MUST(mmap(page, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
	return NULL;
}

/* In RESET --check does not look at what is posted. */
static void to_init_of_datagrams(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
}

int main(int argc, char **argv)
{
	const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 0x61 } };
	struct ibv_qp_init_attr init = { .cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	void *const page = map_pages(SIZE);
	struct ibv_qp *qps[QUEUE_PAIRS];
	struct ibv_mr *mr;
	pthread_t thread;

	make_ends(&ends, argc, argv, 0);
	init.send_cq = ends.sends;
	init.recv_cq = ends.receives;
	for (int i = 0; i < QUEUE_PAIRS; ++i) {
		MUST(qps[i] = ibv_create_qp(ends.pd, &init));
		to_init_of_datagrams(qps[i]);
		MUST(!ibv_attach_mcast(qps[i], &group, 0));
	}
	MUST(mr = ibv_reg_mr(ends.pd, page, SIZE, 0));
	if (!clean) {
		const time_t end = time(NULL) + SECONDS;

		MUST(!pthread_create(&thread, NULL, replace, page));
		while (time(NULL) < end)
			for (int i = 0; i < QUEUE_PAIRS; ++i)
				MUST(ibv_destroy_qp(qps[i]) == EBUSY);
		__atomic_store_n(&over, true, __ATOMIC_RELAXED);
		MUST(!pthread_join(thread, NULL));
	}
	MUST(!ibv_dereg_mr(mr));
	for (int i = 0; i < QUEUE_PAIRS; ++i) {
		MUST(!ibv_detach_mcast(qps[i], &group, 0));
		MUST(!ibv_destroy_qp(qps[i]));
	}
	munmap(page, SIZE);
	destroy_ends(&ends);
	return 0;
}
