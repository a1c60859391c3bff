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

/* X(name) for each, in the order of the table. */
#define UIWARP_VERBS(X) \
	X(context_open) X(context_close) X(context_events_taken) X(comp_vectors) X(query_device) \
	X(query_port) X(pd_alloc) X(pd_alloc_parent) X(pd_dealloc) X(pd_handle) X(pd_import) X(pd_unimport) X(td_alloc) X(td_dealloc) \
	X(mr_reg) X(mr_rereg) X(mr_dereg) X(mr_handle) X(mr_import) X(mr_unimport) X(mr_advise) X(mw_alloc) X(mw_dealloc) X(mw_next_rkey) \
	X(ah_create) X(ah_destroy) X(cq_create) X(cq_destroy) X(cq_resize) X(cq_poll) X(cq_arm) \
	X(cq_has_overflowed) X(cq_single_threaded) X(srq_create) X(srq_modify) X(srq_query) X(srq_destroy) \
	X(srq_post_recv) X(srq_room) X(qp_create) X(qp_destroy) X(qp_modify) X(qp_query) X(qp_post_send) \
	X(qp_post_recv) X(qp_attach) X(qp_detach) X(qp_batch_begin) X(qp_batch_add) \
	X(qp_batch_address) X(qp_batch_end) X(qp_send_ops) X(object_free) X(acks_missing) \
	X(peer_refused) X(write_refused) X(receive_awaited) X(receives_dropped) X(datagram_too_long) \
	X(connected) X(agreed) X(fpdu_passed) \
	X(async_event_taken) X(cq_waiting) X(cq_event_taken) X(cm_event_taken) X(cm_id_destroyed) \
	X(cm_connecting) X(cm_accepting) X(qp_break) X(qp_deafen) X(qp_patience) X(datagram_arriving) \
	X(pd_device) X(cq_overrun) X(cq_wake) \
	X(device_pretend) X(device_hold_down) X(device_shift_gids) \
	X(device_find)

#define UIWARP_VERB(name) __typeof__(uiwarp_##name) *name;
struct uiwarp_verbs {
	UIWARP_VERBS(UIWARP_VERB)
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
