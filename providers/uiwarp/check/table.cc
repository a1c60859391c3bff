// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What libuiwarp-instruments.so exports: the table of --check.
#include <cerrno>
#include <cstring>

#include "check/wraps.h"
#include "core/check_options.h"

namespace uiw::check {

const uiwarp_verbs* next = nullptr;
Wants wants;

namespace {

const uiwarp_verbs* make_table() {
  static uiwarp_verbs table = *next;  // what is not named below looks at no object
#define UIW_TAKE(name) table.name = wrap::name
  UIW_TAKE(context_open);
  UIW_TAKE(context_close);
  UIW_TAKE(context_events_taken);
  UIW_TAKE(query_device);
  UIW_TAKE(query_port);
  UIW_TAKE(pd_alloc);
  UIW_TAKE(pd_alloc_parent);
  UIW_TAKE(pd_dealloc);
  UIW_TAKE(td_alloc);
  UIW_TAKE(td_dealloc);
  UIW_TAKE(mr_reg);
  UIW_TAKE(mr_rereg);
  UIW_TAKE(mr_dereg);
  UIW_TAKE(mr_advise);
  UIW_TAKE(mw_alloc);
  UIW_TAKE(mw_dealloc);
  UIW_TAKE(ah_create);
  UIW_TAKE(ah_destroy);
  UIW_TAKE(cq_create);
  UIW_TAKE(cq_destroy);
  UIW_TAKE(cq_resize);
  UIW_TAKE(cq_poll);
  UIW_TAKE(cq_arm);
  UIW_TAKE(cq_has_overflowed);
  UIW_TAKE(srq_create);
  UIW_TAKE(srq_modify);
  UIW_TAKE(srq_query);
  UIW_TAKE(srq_destroy);
  UIW_TAKE(srq_post_recv);
  UIW_TAKE(qp_create);
  UIW_TAKE(qp_destroy);
  UIW_TAKE(qp_modify);
  UIW_TAKE(qp_query);
  UIW_TAKE(qp_post_send);
  UIW_TAKE(qp_post_recv);
  UIW_TAKE(qp_attach);
  UIW_TAKE(qp_detach);
  UIW_TAKE(qp_batch_begin);
  UIW_TAKE(qp_batch_add);
  UIW_TAKE(qp_batch_address);
  UIW_TAKE(qp_batch_end);
  UIW_TAKE(acks_missing);
#undef UIW_TAKE
  return &table;
}

}  // namespace
}  // namespace uiw::check

int uiwarp_instrument(int interface, const char* name, const char* options,
                      const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  using namespace uiw;
  core::CheckOptions parsed;
  if (interface != UIWARP_ABI_VERSION || std::strcmp(name, "check") != 0) return ENOTSUP;
  if (!core::parse_check_options(options, parsed)) return ENOTSUP;
  check::next = next_table;
  check::wants.hints = parsed.hints;
  if (!check::Report::instance().configure(parsed)) return EINVAL;
  *table = check::make_table();
  return 0;
}
