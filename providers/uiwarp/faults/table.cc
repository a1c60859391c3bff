// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "core/covers.h"
#include "faults/instrument.h"
#include "faults/wraps.h"

namespace uiw::faults {

const uiwarp_verbs* next = nullptr;

namespace {

UIW_TABLE_OVER(UIW_FAULTY_VERBS, uiwarp_cq, uiwarp_qp)

}  // namespace

int make_table(const char* path, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  if (!configure(path)) return EINVAL;
  next = next_table;
  *table = table_over(*next_table);
  return 0;
}

}  // namespace uiw::faults
