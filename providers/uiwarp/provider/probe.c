/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Private ABI 34 has two layouts of a queue pair under one symbol version: up to rdma-core 44 its flags
 * are at octet 352, from 45 on at 360, as with all later private ABIs. A public function tells which one is
 * loaded, without crashing on either.
 */
#include <string.h>

#include "provider/provider.h"

size_t provider_qp_flags_at(void)
{
	static const size_t places[] = { UIWARP_VERBS_QP_MASK_TO_44, UIWARP_VERBS_QP_MASK_FROM_45 };
	_Alignas(16) char scratch[1024];
	const uint32_t flag = UIWARP_VERBS_QP_EX;

	memset(scratch, 0, sizeof(scratch));
	if (ibv_qp_to_qp_ex((struct ibv_qp *)scratch))
		return 0; /* does not look at flags at all */
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
		memset(scratch, 0, sizeof(scratch));
		memcpy(scratch + places[i], &flag, sizeof(flag));
		if (ibv_qp_to_qp_ex((struct ibv_qp *)scratch))
			return places[i];
	}
	return 0;
}
