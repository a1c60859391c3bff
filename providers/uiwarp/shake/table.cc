// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "core/covers.h"
#include "core/per_process.h"
#include "shake/instrument.h"
#include "shake/wraps.h"

namespace uiw::shake {

const uiwarp_verbs* next = nullptr;
core::ShakeOptions options;

Process* this_process() {
  static constinit core::PerProcess<Process> processes;
  return processes.get();
}

namespace {

UIW_TABLE_OVER(UIW_SHAKEN_VERBS, uiwarp_cq, uiwarp_qp_init)

}  // namespace

int make_table(const char* text, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  if (!core::parse_shake_options(text, options)) return ENOTSUP;
  next = next_table;
  *table = table_over(*next_table);
  return 0;
}

}  // namespace uiw::shake
