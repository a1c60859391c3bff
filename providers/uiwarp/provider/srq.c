/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared receive queues. libibverbs fills the public fields. */
#include <errno.h>

#include "provider/provider.h"

struct ibv_srq *provider_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct provider_srq *mine = provider_new(sizeof(*mine));
	int error;

	if (!mine)
		return NULL;
	error = core_verbs->srq_create(core_pd(pd), &init->attr, &mine->srq, &mine->core);
	return error ? provider_fail(mine, error) : &mine->srq;
}

int provider_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return provider_result(core_verbs->srq_modify(core_srq(srq), attr, mask));
}

int provider_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return provider_result(core_verbs->srq_query(core_srq(srq), attr));
}

int provider_destroy_srq(struct ibv_srq *srq)
{
	uint32_t async_events;
	int error = core_verbs->srq_destroy(core_srq(srq), &async_events);

	if (error)
		return provider_result(error);
	if (async_events != UIWARP_NO_EVENTS) {
		pthread_mutex_lock(&srq->mutex);
		provider_wait_for_acks("ibv_destroy_srq", "ibv_ack_async_event", async_events, &srq->events_completed,
				       &srq->cond, &srq->mutex);
		pthread_mutex_unlock(&srq->mutex);
	}
	core_verbs->object_free(srq);
	return 0;
}

int provider_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return core_verbs->srq_post_recv(core_srq(srq), wr, bad);
}
