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
  static uiwarp_verbs table = *next;
#define UIW_TAKE(name) table.name = wrap::name;
  UIW_CHECKED_VERBS(UIW_TAKE)
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
