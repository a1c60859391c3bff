/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues. libibverbs fills the public fields but the size. */
#include <errno.h>

#include "provider/provider.h"

static struct provider_cq *create(struct ibv_context *context, uint32_t cqe, struct ibv_comp_channel *channel,
				  uint32_t comp_vector, struct uiwarp_pd *parent_domain)
{
	struct provider_cq *mine = provider_new(sizeof(*mine));
	int error;

	if (!mine)
		return NULL;
	if (cqe > INT32_MAX || comp_vector > INT32_MAX)
		error = uiwarp_refuse(EINVAL, "ibv_create_cq: cqe (%d) or comp_vector (%d) is negative", (int)cqe,
				      (int)comp_vector);
	else
		error = core_verbs->cq_create(core_context(context), (int)cqe, channel ? channel->fd : -1, (int)comp_vector,
					 parent_domain, &mine->cq, &mine->core, &mine->cq.cqe);
	if (error)
		return provider_fail(mine, error);
	pthread_mutex_init(&mine->polling, NULL);
	return mine;
}

struct ibv_cq *provider_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
				  int comp_vector)
{
	struct provider_cq *mine = create(context, (uint32_t)cqe, channel, (uint32_t)comp_vector, NULL);

	return mine ? &mine->cq : NULL;
}

struct ibv_cq_ex *provider_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	struct uiwarp_pd *parent_domain = NULL;
	struct provider_cq *mine;
	uint32_t flags = 0;

	if (init->comp_mask & ~known)
		return provider_fail(NULL, uiwarp_refuse(EOPNOTSUPP,
							 "ibv_create_cq_ex: comp_mask 0x%x has more than flags and "
							 "parent domain", init->comp_mask));
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		flags = init->flags;
	if ((flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) || (init->wc_flags & ~provider_wc_flags))
		return provider_fail(NULL, uiwarp_refuse(EOPNOTSUPP,
							 "ibv_create_cq_ex: wc_flags 0x%llx are more than those of struct "
							 "ibv_wc (no time stamps), or flags 0x%x more than "
							 "IBV_CREATE_CQ_ATTR_SINGLE_THREADED",
							 (unsigned long long)init->wc_flags, flags));
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		if (!init->parent_domain)
			return provider_fail(NULL, uiwarp_refuse(EINVAL, "ibv_create_cq_ex: parent_domain is null"));
		parent_domain = core_pd(init->parent_domain);
	}
	mine = create(context, init->cqe, init->channel, init->comp_vector, parent_domain);
	if (!mine)
		return NULL;
	mine->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (mine->single_threaded)
		core_verbs->cq_single_threaded(mine->core);
	provider_cq_set_poll_ops(mine);
	return &mine->ex;
}

int provider_destroy_cq(struct ibv_cq *cq)
{
	uint32_t comp_events, async_events;
	int error = core_verbs->cq_destroy(core_cq(cq), &comp_events, &async_events);

	if (error)
		return provider_result(error);
	/* ibv_destroy_cq waits until every event the application got was acknowledged. */
	if (async_events != UIWARP_NO_EVENTS) {
		pthread_mutex_lock(&cq->mutex);
		provider_wait_for_acks("ibv_destroy_cq", "ibv_ack_cq_events", comp_events, &cq->comp_events_completed,
				       &cq->cond, &cq->mutex);
		provider_wait_for_acks("ibv_destroy_cq", "ibv_ack_async_event", async_events,
				       &cq->async_events_completed, &cq->cond, &cq->mutex);
		pthread_mutex_unlock(&cq->mutex);
	}
	pthread_mutex_destroy(&((struct provider_cq *)cq)->polling);
	core_verbs->object_free(cq);
	return 0;
}

int provider_resize_cq(struct ibv_cq *cq, int cqe)
{
	return provider_result(core_verbs->cq_resize(core_cq(cq), cqe, &cq->cqe));
}

int provider_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	return core_verbs->cq_poll(core_cq(cq), count, wc);
}

int provider_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return core_verbs->cq_arm(core_cq(cq), solicited_only);
}

void provider_cq_event(struct ibv_cq *cq)
{
	core_verbs->cq_event_taken(core_cq(cq));
	core_verbs->context_events_taken(core_context(cq->context), 0);
}
