// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <array>
#include <cerrno>
#include <string_view>

#include "core/covers.h"
#include "trace/instrument.h"
#include "trace/wraps.h"

namespace uiw::trace {

const uiwarp_verbs* next = nullptr;

namespace {

#define UIW_NAME(name) std::string_view(#name),
constexpr std::array kWrapped = {UIW_TRACED_VERBS(UIW_NAME)};
#undef UIW_NAME
static_assert(core::Covers<uiwarp_qp>::all(kWrapped));

}  // namespace

int make_table(const char* options, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  if (!configure(options)) return ENOTSUP;
  static uiwarp_verbs ours;
  next = next_table;
  ours = *next_table;
#define UIW_TAKE(name) ours.name = wrap::name;
  UIW_TRACED_VERBS(UIW_TAKE)
#undef UIW_TAKE
  *table = &ours;
  return 0;
}

}  // namespace uiw::trace
