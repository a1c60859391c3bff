/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Queue pairs. Of these libibverbs fills nothing. */
#include <errno.h>

#include "provider/provider.h"

static void end_waiting(struct ibv_qp *qp)
{
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
}

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_qp_init_attr *init, bool extended)
{
	struct provider_qp *mine = provider_new(sizeof(*mine));
	struct ibv_qp *qp;
	int error;

	if (!mine)
		return NULL;
	qp = &mine->qp;
	qp->context = pd->context;
	qp->qp_context = init->qp_context;
	qp->pd = pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->qp_type = init->qp_type;
	/* As with every device; an RNIC's queue pair is in INIT by then, which ibv_query_qp tells. */
	qp->state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
	mine->sq_sig_all = init->sq_sig_all;
	if (extended)
		provider_qp_set_wr_ops(mine);

	struct uiwarp_qp_init core = {
		.send_cq = init->send_cq ? core_cq(init->send_cq) : NULL,
		.recv_cq = init->recv_cq ? core_cq(init->recv_cq) : NULL,
		.srq = init->srq ? core_srq(init->srq) : NULL,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.user = qp,
	};
	error = core_verbs->qp_create(core_pd(pd), &core, &mine->core, &qp->qp_num);
	if (error) {
		end_waiting(qp);
		return provider_fail(mine, error);
	}
	init->cap = core.cap;
	qp->handle = qp->qp_num;
	return qp;
}

struct ibv_qp *provider_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return create(pd, init, false);
}

struct ibv_qp *provider_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	const bool extended = init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const uint64_t lacks = extended ? init->send_ops_flags & ~core_verbs->qp_send_ops(init->qp_type) : 0;

	if (init->comp_mask & ~known) /* XRC, RSS, TSO */
		return provider_fail(NULL, uiwarp_refuse(EOPNOTSUPP,
							 "ibv_create_qp_ex: comp_mask 0x%x asks for more than there is: no "
							 "XRC, RSS and TSO", init->comp_mask));
	if ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && init->create_flags)
		return provider_fail(NULL, uiwarp_refuse(EOPNOTSUPP, "ibv_create_qp_ex: there are no create_flags (0x%x)",
							 init->create_flags));
	if (lacks)
		return provider_fail(NULL, uiwarp_refuse(EOPNOTSUPP,
							 "ibv_create_qp_ex: send_ops_flags has operations that queue pairs "
							 "of this type and face do not have: 0x%llx%s",
							 (unsigned long long)lacks,
							 lacks & IBV_QP_EX_WITH_SEND_WITH_IMM
								 ? " (Send with immediate wants the RoCE face: uiwarp run "
								   "--as roce)"
								 : ""));
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->pd || init->pd->context != context)
		return provider_fail(NULL, uiwarp_refuse(EINVAL,
							 "ibv_create_qp_ex: needs IBV_QP_INIT_ATTR_PD and a protection "
							 "domain of the same ibv_context"));
	/* struct ibv_qp_init_attr_ex begins with the fields of the plain one; libibverbs relies on it too. */
	return create(init->pd, (struct ibv_qp_init_attr *)init, extended);
}

int provider_destroy_qp(struct ibv_qp *qp)
{
	uint32_t async_events;
	int error = core_verbs->qp_destroy(core_qp(qp), &async_events);

	if (error)
		return provider_result(error);
	if (async_events != UIWARP_NO_EVENTS) {
		pthread_mutex_lock(&qp->mutex);
		provider_wait_for_acks("ibv_destroy_qp", "ibv_ack_async_event", async_events, &qp->events_completed,
				       &qp->cond, &qp->mutex);
		pthread_mutex_unlock(&qp->mutex);
	}
	end_waiting(qp);
	core_verbs->object_free(qp);
	return 0;
}

int provider_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return provider_result(core_verbs->qp_modify(core_qp(qp), attr, mask));
}

int provider_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	int error = core_verbs->qp_query(core_qp(qp), attr, mask, init);

	if (error)
		return provider_result(error);
	init->qp_context = qp->qp_context;
	init->send_cq = qp->send_cq;
	init->recv_cq = qp->recv_cq;
	init->srq = qp->srq;
	init->qp_type = qp->qp_type;
	init->sq_sig_all = ((struct provider_qp *)qp)->sq_sig_all;
	return 0;
}

/* A LID means nothing here. */
int provider_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return provider_result(core_verbs->qp_attach(core_qp(qp), gid));
}

int provider_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return provider_result(core_verbs->qp_detach(core_qp(qp), gid));
}

int provider_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return core_verbs->qp_post_send(core_qp(qp), wr, bad);
}

int provider_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return core_verbs->qp_post_recv(core_qp(qp), wr, bad);
}
