// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "core/covers.h"
#include "core/injected.h"
#include "trace/instrument.h"
#include "trace/wraps.h"

namespace uiw::trace {

const uiwarp_verbs* next = nullptr;

namespace {

UIW_TABLE_OVER(UIW_TRACED_VERBS, uiwarp_qp)

}  // namespace

int make_table(const char* options, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  if (!configure(options)) return ENOTSUP;
  next = next_table;
  *table = table_over(*next_table);
  core::on_injected.store(injected, std::memory_order_release);
  return 0;
}

}  // namespace uiw::trace
