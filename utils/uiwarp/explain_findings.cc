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
                    {kind.remedy, "doc/check.md, and the stacks of the finding."}});
  return rows;
}

}  // namespace

std::span<const Explanation> explained_findings() {
  static const std::vector<Explanation> rows = make_rows();
  return rows;
}

}  // namespace uiw::tool
