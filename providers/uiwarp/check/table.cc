// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "check/instrument.h"
#include "check/watched_calls.h"
#include "check/wraps.h"
#include "core/check_options.h"
#include "core/covers.h"

namespace uiw::check {

const uiwarp_verbs* next = nullptr;
Wants wants;

namespace {

UIW_TABLE_OVER(UIW_CHECKED_VERBS, uiwarp_context, uiwarp_pd, uiwarp_mr, uiwarp_cq, uiwarp_srq,
               uiwarp_qp)

}  // namespace

int make_table(const char* options, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  core::CheckOptions parsed;
  if (!core::parse_check_options(options, parsed)) return ENOTSUP;
  next = next_table;
  wants.hints = parsed.hints;
  if (!Report::instance().configure(parsed)) return EINVAL;
  *table = table_over(*next_table);
  watch_calls();
  return 0;
}

}  // namespace uiw::check
