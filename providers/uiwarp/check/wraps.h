// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The functions of the table that --check puts in front of another: each calls that of the next
// table, keeps the objects up to date, and asks rules.h. Contracts are those of uiwarp-abi.h.
#pragma once

#include "check/objects.h"
#include "check/report.h"
#include "check/rules.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::check {

// The next table; set before any function here is called.
extern const uiwarp_verbs* next;

struct Wants {
  bool hints = false;  // findings that are not certain: worth what it costs to look for them
};
extern Wants wants;

// Destroying `object` failed with EBUSY.
void report_busy(const char* call, const void* object, const char* otherwise);

namespace wrap {

#define UIW_WRAP(name) decltype(uiwarp_##name) name
UIW_WRAP(context_open);
UIW_WRAP(context_close);
UIW_WRAP(context_events_taken);
UIW_WRAP(query_device);
UIW_WRAP(query_port);
UIW_WRAP(pd_alloc);
UIW_WRAP(pd_alloc_parent);
UIW_WRAP(pd_dealloc);
UIW_WRAP(td_alloc);
UIW_WRAP(td_dealloc);
UIW_WRAP(mr_reg);
UIW_WRAP(mr_rereg);
UIW_WRAP(mr_dereg);
UIW_WRAP(mr_advise);
UIW_WRAP(mw_alloc);
UIW_WRAP(mw_dealloc);
UIW_WRAP(ah_create);
UIW_WRAP(ah_destroy);
UIW_WRAP(cq_create);
UIW_WRAP(cq_destroy);
UIW_WRAP(cq_resize);
UIW_WRAP(cq_poll);
UIW_WRAP(cq_arm);
UIW_WRAP(cq_has_overflowed);
UIW_WRAP(srq_create);
UIW_WRAP(srq_modify);
UIW_WRAP(srq_query);
UIW_WRAP(srq_destroy);
UIW_WRAP(srq_post_recv);
UIW_WRAP(qp_create);
UIW_WRAP(qp_destroy);
UIW_WRAP(qp_modify);
UIW_WRAP(qp_query);
UIW_WRAP(qp_post_send);
UIW_WRAP(qp_post_recv);
UIW_WRAP(qp_attach);
UIW_WRAP(qp_detach);
UIW_WRAP(qp_batch_begin);
UIW_WRAP(qp_batch_add);
UIW_WRAP(qp_batch_address);
UIW_WRAP(qp_batch_end);
UIW_WRAP(acks_missing);
#undef UIW_WRAP

}  // namespace wrap
}  // namespace uiw::check
