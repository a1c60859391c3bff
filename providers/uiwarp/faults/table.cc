// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "faults/instrument.h"
#include "faults/wraps.h"

namespace uiw::faults {

const uiwarp_verbs* next = nullptr;

int make_table(const char* path, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  if (!configure(path)) return EINVAL;
  static uiwarp_verbs ours;
  next = next_table;
  ours = *next_table;
#define UIW_TAKE(name) ours.name = wrap::name;
  UIW_FAULTY_VERBS(UIW_TAKE)
#undef UIW_TAKE
  *table = &ours;
  return 0;
}

}  // namespace uiw::faults
