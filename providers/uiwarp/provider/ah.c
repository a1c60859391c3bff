/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Address handles. libibverbs fills the public fields. */

#include "provider/provider.h"

struct ibv_ah *provider_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct uiwarp_ibv_ah *mine = provider_new(sizeof(*mine));
	int error;

	if (!mine)
		return NULL;
	error = core_verbs->ah_create(core_pd(pd), attr, &mine->core);
	return error ? provider_fail(mine, error) : &mine->ah;
}

int provider_destroy_ah(struct ibv_ah *ah)
{
	int error = core_verbs->ah_destroy(((struct uiwarp_ibv_ah *)ah)->core);

	if (!error)
		core_verbs->object_free(ah);
	return provider_result(error);
}
