// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults.h"

#include <cstdio>

#include "faults/rules.h"

namespace uiw::tool {

int explain_faults(const std::string& path) {
  faults::Rules rules;
  const std::string problem = faults::load(path, rules);
  if (!problem.empty()) {
    fprintf(stderr, "uiwarp: %s\n", problem.c_str());
    return 2;
  }
  for (const faults::Rule& rule : rules.list) printf("%s\n", faults::explain(rule).c_str());
  if (rules.list.size() > 1)
    printf(
        "Where several rules meet one event, the first is carried out. Each counts all events.\n");
  return 0;
}

}  // namespace uiw::tool
