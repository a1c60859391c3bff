/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Protection domains, parent domains and thread domains. Of protection domains that are allocated libibverbs fills
 * the public fields but the handle, of the others nothing.
 */
#include <errno.h>

#include "provider/provider.h"

struct ibv_pd *provider_alloc_pd(struct ibv_context *context)
{
	struct provider_pd *mine = provider_new(sizeof(*mine));
	int error;

	if (!mine)
		return NULL;
	error = core_verbs->pd_alloc(core_context(context), &mine->core);
	if (error)
		return provider_fail(mine, error);
	mine->pd.handle = core_verbs->pd_handle(mine->core);
	return &mine->pd;
}

struct ibv_pd *provider_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct provider_pd *mine = provider_new(sizeof(*mine));
	int error;

	if (!mine)
		return NULL;
	error = core_verbs->pd_import(core_context(context), handle, &mine->core);
	if (error)
		return provider_fail(mine, error);
	mine->pd.context = context;
	mine->pd.handle = handle;
	return &mine->pd;
}

void provider_unimport_pd(struct ibv_pd *pd)
{
	core_verbs->pd_unimport(core_pd(pd));
	core_verbs->object_free(pd);
}

/*
 * Allocators are for memory that a device shares with the program, such as the buffers of queues. Here there is
 * none, so they are never called.
 */
struct ibv_pd *provider_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct provider_pd *mine;
	int error;

	if (attr->comp_mask & ~known)
		return provider_fail(NULL, uiwarp_refuse(EOPNOTSUPP,
							 "ibv_alloc_parent_domain: comp_mask 0x%x has bits that are not of "
							 "enum ibv_parent_domain_init_attr_mask",
							 attr->comp_mask));
	if (!attr->pd)
		return provider_fail(NULL, uiwarp_refuse(EINVAL, "ibv_alloc_parent_domain: pd is null"));
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) && (!attr->alloc || !attr->free))
		return provider_fail(NULL, uiwarp_refuse(EINVAL,
							 "ibv_alloc_parent_domain: IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS "
							 "needs both alloc and free"));
	mine = provider_new(sizeof(*mine));
	if (!mine)
		return NULL;
	error = core_verbs->pd_alloc_parent(core_context(context), core_pd(attr->pd), attr->td ? core_td(attr->td) : NULL,
				       &mine->core);
	if (error)
		return provider_fail(mine, error);
	mine->pd.context = context;
	mine->pd.handle = attr->pd->handle;
	return &mine->pd;
}

int provider_dealloc_pd(struct ibv_pd *pd)
{
	int error = core_verbs->pd_dealloc(core_pd(pd));

	if (!error)
		core_verbs->object_free(pd);
	return provider_result(error);
}

struct ibv_td *provider_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init)
{
	struct provider_td *mine;
	int error;

	if (init->comp_mask)
		return provider_fail(NULL, uiwarp_refuse(EOPNOTSUPP, "ibv_alloc_td: comp_mask is 0x%x, nothing is known",
							 init->comp_mask));
	mine = provider_new(sizeof(*mine));
	if (!mine)
		return NULL;
	error = core_verbs->td_alloc(core_context(context), &mine->core);
	if (error)
		return provider_fail(mine, error);
	mine->td.context = context;
	return &mine->td;
}

int provider_dealloc_td(struct ibv_td *td)
{
	int error = core_verbs->td_dealloc(core_td(td));

	if (!error)
		core_verbs->object_free(td);
	return provider_result(error);
}
