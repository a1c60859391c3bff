// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The functions of the table that --shake puts in front of another. Contracts are those of
// uiwarp-abi.h.
#pragma once

#include "shake/objects.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::shake {

// The next table, and what UIWARP_SHAKE says; set before any function here is called.
extern const uiwarp_verbs* next;
extern core::ShakeOptions options;

// X(name) for each; the others neither complete anything nor know an object of ours.
// clang-format off
#define UIW_SHAKEN_VERBS(X) \
  X(context_events_taken) X(cq_create) X(cq_destroy) X(cq_resize) X(cq_poll) X(cq_arm) \
  X(cq_has_overflowed) X(cq_overrun) X(cq_wake) X(cq_single_threaded) X(cq_waiting) X(cq_event_taken) X(qp_create) X(qp_destroy) X(qp_modify) \
  X(qp_post_send) X(qp_post_recv) X(srq_post_recv) X(qp_batch_begin) X(qp_batch_add) X(qp_batch_end)
// clang-format on

namespace wrap {

#define UIW_DECLARE(name) decltype(uiwarp_##name) name;
UIW_SHAKEN_VERBS(UIW_DECLARE)
#undef UIW_DECLARE

}  // namespace wrap
}  // namespace uiw::shake
