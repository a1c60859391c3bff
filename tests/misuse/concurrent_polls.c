/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two threads poll a completion queue that was created for one at a time.
 * Finding: concurrent-use
 */
#include "misuse.h"

#include <pthread.h>

#define POLLS 300000 /* of each: most of the time a thread is in one */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *poll_on(void *cq)
{
	struct ibv_wc wc;

	pthread_barrier_wait(&both);
	for (int i = 0; i < POLLS; ++i) {
		if (clean)
			pthread_mutex_lock(&turn);
		MUST(ibv_poll_cq(cq, 1, &wc) == 0);
		if (clean)
			pthread_mutex_unlock(&turn);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct ends ends;
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *cq;
	pthread_t thread;

	make_ends(&ends, argc, argv, 0);
	MUST(cq = ibv_create_cq_ex(ends.context, &init));
	MUST(!pthread_barrier_init(&both, NULL, 2));
	MUST(!pthread_create(&thread, NULL, poll_on, ibv_cq_ex_to_cq(cq)));
	poll_on(ibv_cq_ex_to_cq(cq));
	MUST(!pthread_join(thread, NULL));
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	destroy_ends(&ends);
	return 0;
}
