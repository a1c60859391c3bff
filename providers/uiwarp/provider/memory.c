/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory regions, memory windows. Of regions that are registered libibverbs fills the public fields but the keys and
 * the handle, of imported ones and of windows nothing.
 */
#include <errno.h>

#include "provider/provider.h"

struct ibv_mr *provider_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct provider_mr *mine = provider_new(sizeof(*mine));
	int error;

	if (!mine)
		return NULL;
	error = core_verbs->mr_reg(core_pd(pd), addr, length, iova, access, &mine->core, &mine->verbs.mr.lkey,
			      &mine->verbs.mr.rkey);
	if (error)
		return provider_fail(mine, error);
	mine->verbs.mr.handle = core_verbs->mr_handle(mine->core);
	mine->verbs.mr_type = 0;
	mine->verbs.access = access;
	return &mine->verbs.mr;
}

/*
 * libibverbs makes one of its own codes of any error, and leaves errno to us. Without IBV_REREG_MR_CHANGE_PD `pd` is
 * whatever the program gave, and need not be a pointer (ibv_rereg_mr(3)).
 */
int provider_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct uiwarp_pd *inner = (flags & IBV_REREG_MR_CHANGE_PD) && pd ? core_pd(pd) : NULL;
	int error = core_verbs->mr_rereg(((struct provider_mr *)mr)->core, flags, inner, addr, length, access,
					 &mr->mr.lkey, &mr->mr.rkey);

	if (!error && (flags & IBV_REREG_MR_CHANGE_ACCESS))
		mr->access = access;
	return provider_result(error);
}

int provider_dereg_mr(struct verbs_mr *mr)
{
	int error = core_verbs->mr_dereg(((struct provider_mr *)mr)->core);

	if (!error)
		core_verbs->object_free(mr);
	return provider_result(error);
}

struct ibv_mr *provider_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct provider_mr *mine = provider_new(sizeof(*mine));
	uint64_t length;
	int error;

	if (!mine)
		return NULL;
	error = core_verbs->mr_import(core_pd(pd), handle, &mine->core, &mine->verbs.mr.lkey, &mine->verbs.mr.rkey,
				      &length);
	if (error)
		return provider_fail(mine, error);
	mine->verbs.mr.context = pd->context;
	mine->verbs.mr.pd = pd;
	mine->verbs.mr.length = length;
	mine->verbs.mr.handle = handle;
	mine->verbs.mr_type = UIWARP_VERBS_MR_IMPORTED;
	return &mine->verbs.mr;
}

void provider_unimport_mr(struct ibv_mr *mr)
{
	core_verbs->mr_unimport(((struct provider_mr *)mr)->core);
	core_verbs->object_free(mr);
}

int provider_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sges,
		       uint32_t count)
{
	return provider_result(core_verbs->mr_advise(core_pd(pd), (int)advice, flags, sges, count));
}

struct ibv_mw *provider_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct uiwarp_ibv_mw *mine = provider_new(sizeof(*mine));
	int error;

	if (!mine)
		return NULL;
	error = core_verbs->mw_alloc(core_pd(pd), (int)type, &mine->core, &mine->mw.rkey);
	if (error)
		return provider_fail(mine, error);
	mine->mw.context = pd->context;
	mine->mw.pd = pd;
	mine->mw.type = type;
	return &mine->mw;
}

int provider_dealloc_mw(struct ibv_mw *mw)
{
	int error = core_verbs->mw_dealloc(((struct uiwarp_ibv_mw *)mw)->core);

	if (!error)
		core_verbs->object_free(mw);
	return provider_result(error);
}

/* Of type 1 only, which libibverbs has checked: its next key is ours to choose. */
int provider_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .bind_info = bind->bind_info},
	};
	int error = core_verbs->mw_next_rkey(((struct uiwarp_ibv_mw *)mw)->core, mw->rkey, &wr.bind_mw.rkey);

	if (!error)
		error = provider_post_send(qp, &wr, &bad);
	if (!error)
		mw->rkey = wr.bind_mw.rkey;
	return error;
}
