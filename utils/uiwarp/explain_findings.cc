// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <vector>

#include "check/kinds.h"
#include "explain.h"

namespace uiw::tool {
namespace {

std::vector<Explanation> make_rows() {
  std::vector<Explanation> rows;
  for (const check::KindInfo& kind : check::kinds())
    rows.push_back({"finding",
                    kind.name,
                    kNoNumber,
                    kind.title,
                    nullptr,
                    kind.on_adapters,
                    {},
                    {"doc/check.md, and the stacks of the finding."},
                    kind.remedy});
  rows.push_back(
      {"exit status",
       "status-66",
       66,
       "of a program that had findings or, with hints=1, hints",
       "`uiwarp run --check` found misuse of the verbs. This status replaces that of the program; "
       "--check=exit=0 keeps it.",
       nullptr,
       {},
       {"The text after 'uiwarp check:' on standard error.", "doc/check.md"}});
  return rows;
}

}  // namespace

std::span<const Explanation> explained_findings() {
  static const std::vector<Explanation> rows = make_rows();
  return rows;
}

}  // namespace uiw::tool
