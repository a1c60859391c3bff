// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs functions of uiwarp-abi.h as one table: the line between the provider and the stack. Instruments
 * (doc/decisions/029-instruments.md) stand on it: each takes the table of what is next and gives one of its own.
 * Functions, arguments and errors are those of uiwarp-abi.h. A handle that a table's function made is good for
 * functions of that table only.
 */
#ifndef UIWARP_VERBS_H
#define UIWARP_VERBS_H

#include "uiwarp/uiwarp-abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UIWARP_VERB(name) __typeof__(uiwarp_##name) *name

struct uiwarp_verbs {
	UIWARP_VERB(context_open);
	UIWARP_VERB(context_close);
	UIWARP_VERB(context_events_taken);
	UIWARP_VERB(comp_vectors);
	UIWARP_VERB(query_device);
	UIWARP_VERB(query_port);
	UIWARP_VERB(pd_alloc);
	UIWARP_VERB(pd_alloc_parent);
	UIWARP_VERB(pd_dealloc);
	UIWARP_VERB(td_alloc);
	UIWARP_VERB(td_dealloc);
	UIWARP_VERB(mr_reg);
	UIWARP_VERB(mr_rereg);
	UIWARP_VERB(mr_dereg);
	UIWARP_VERB(mr_advise);
	UIWARP_VERB(mw_alloc);
	UIWARP_VERB(mw_dealloc);
	UIWARP_VERB(mw_next_rkey);
	UIWARP_VERB(ah_create);
	UIWARP_VERB(ah_destroy);
	UIWARP_VERB(cq_create);
	UIWARP_VERB(cq_destroy);
	UIWARP_VERB(cq_resize);
	UIWARP_VERB(cq_poll);
	UIWARP_VERB(cq_arm);
	UIWARP_VERB(cq_has_overflowed);
	UIWARP_VERB(srq_create);
	UIWARP_VERB(srq_modify);
	UIWARP_VERB(srq_query);
	UIWARP_VERB(srq_destroy);
	UIWARP_VERB(srq_post_recv);
	UIWARP_VERB(qp_create);
	UIWARP_VERB(qp_destroy);
	UIWARP_VERB(qp_modify);
	UIWARP_VERB(qp_query);
	UIWARP_VERB(qp_post_send);
	UIWARP_VERB(qp_post_recv);
	UIWARP_VERB(qp_attach);
	UIWARP_VERB(qp_detach);
	UIWARP_VERB(qp_batch_begin);
	UIWARP_VERB(qp_batch_add);
	UIWARP_VERB(qp_batch_address);
	UIWARP_VERB(qp_batch_end);
	UIWARP_VERB(qp_send_ops);
	UIWARP_VERB(acks_missing);
};

#undef UIWARP_VERB

/*
 * What the provider is to call: the functions of uiwarp-abi.h, or the instruments that the settings ask for in front
 * of them. The same for the life of the process. When an instrument cannot be had, that has been said, and
 * context_open() fails with EINVAL. Thread: any.
 */
UIWARP_EXPORT const struct uiwarp_verbs *uiwarp_get_verbs(void);

/*
 * libuiwarp-instruments.so exports this one function: *table gets one that has the instrument `name` in front of
 * `next`, for the life of the process; `options` are its setting's text. ENOTSUP: there is none of that name or with
 * such options, or `interface` is not UIWARP_ABI_VERSION; EINVAL: a file that the options name cannot be used, which it
 * has said. Called once for an instrument.
 */
UIWARP_EXPORT int uiwarp_instrument(int interface, const char *name, const char *options,
				    const struct uiwarp_verbs *next, const struct uiwarp_verbs **table);

#ifdef __cplusplus
}
#endif

#endif
