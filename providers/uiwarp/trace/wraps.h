// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The functions of the table that --trace puts in front of another: each calls that of the next
// table and records what has happened. Contracts are those of uiwarp-abi.h.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/ring.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::trace {

// The next table; set before any function here is called.
extern const uiwarp_verbs* next;

// A queue pair as the program has it. All other handles are the next table's own.
struct Qp {
  uiwarp_qp* next = nullptr;
  uint32_t number = 0;
  bool signal_all = false;
  std::vector<Record> batch;  // from batch_begin() to batch_end(), when one thread alone posts
};

inline Qp& of(uiwarp_qp* handle) {
  return *reinterpret_cast<Qp*>(handle);
}

// For core/injected.h.
void injected(uint32_t qp_num, int line, const char* what);

// X(name) for each.
// clang-format off
#define UIW_TRACED_VERBS(X) \
  X(context_open) X(cq_poll) X(srq_post_recv) X(srq_destroy) X(qp_create) X(qp_destroy) X(qp_modify) \
  X(qp_query) X(qp_post_send) X(qp_post_recv) X(qp_attach) X(qp_detach) X(qp_break) X(qp_deafen) X(qp_patience) \
  X(qp_batch_begin) X(qp_batch_add) X(qp_batch_address) X(qp_batch_end) X(peer_refused) \
  X(receive_awaited) X(receives_dropped) X(connected) X(agreed) X(fpdu_passed) X(cm_event_taken) X(async_event_taken)
// clang-format on

namespace wrap {

#define UIW_DECLARE(name) decltype(uiwarp_##name) name;
UIW_TRACED_VERBS(UIW_DECLARE)
#undef UIW_DECLARE

}  // namespace wrap
}  // namespace uiw::trace
