// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What libuiwarp-instruments.so exports: the instruments by their names.
#include <cerrno>
#include <cstring>

#include "check/instrument.h"
#include "faults/instrument.h"
#include "shake/instrument.h"
#include "trace/instrument.h"

int uiwarp_instrument(int interface, const char* name, const char* options,
                      const uiwarp_verbs* next, const uiwarp_verbs** table) {
  if (interface != UIWARP_ABI_VERSION) return ENOTSUP;
  if (std::strcmp(name, "check") == 0) return uiw::check::make_table(options, next, table);
  if (std::strcmp(name, "faults") == 0) return uiw::faults::make_table(options, next, table);
  if (std::strcmp(name, "shake") == 0) return uiw::shake::make_table(options, next, table);
  if (std::strcmp(name, "trace") == 0) return uiw::trace::make_table(options, next, table);
  return ENOTSUP;
}
