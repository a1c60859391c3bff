// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <array>
#include <cerrno>
#include <string_view>

#include "check/instrument.h"
#include "check/wraps.h"
#include "core/check_options.h"
#include "core/covers.h"

namespace uiw::check {

const uiwarp_verbs* next = nullptr;
Wants wants;

namespace {

#define UIW_NAME(name) std::string_view(#name),
constexpr std::array kWrapped = {UIW_CHECKED_VERBS(UIW_NAME)};
#undef UIW_NAME
static_assert(core::Covers<uiwarp_context, uiwarp_pd, uiwarp_mr, uiwarp_cq, uiwarp_srq,
                           uiwarp_qp>::all(kWrapped));

}  // namespace

int make_table(const char* options, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  core::CheckOptions parsed;
  if (!core::parse_check_options(options, parsed)) return ENOTSUP;
  next = next_table;
  wants.hints = parsed.hints;
  if (!Report::instance().configure(parsed)) return EINVAL;
  static uiwarp_verbs ours;
  ours = *next_table;
#define UIW_TAKE(name) ours.name = wrap::name;
  UIW_CHECKED_VERBS(UIW_TAKE)
#undef UIW_TAKE
  *table = &ours;
  return 0;
}

}  // namespace uiw::check
