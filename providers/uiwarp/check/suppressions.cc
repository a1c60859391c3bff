// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/suppressions.h"

#include <fnmatch.h>

#include <algorithm>

#include "check/text.h"

namespace uiw::check {
namespace {

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = line.find_first_not_of(kSpace);
  if (first == line.npos) return {};
  return line.substr(first, line.find_last_not_of(kSpace) - first + 1);
}

bool is_kind(std::string_view name) {
  return name == "*" ||
         std::ranges::any_of(kinds(), [&](const KindInfo& kind) { return name == kind.name; });
}

std::string all_kinds() {
  std::string list = "*";
  for (const KindInfo& kind : kinds()) list += std::string(", ") + kind.name;
  return list;
}

}  // namespace

std::string Suppressions::parse(std::string_view text_) {
  std::vector<Rule> rules;
  for (int number = 1; !text_.empty(); ++number) {
    const size_t end = std::min(text_.find('\n'), text_.size());
    const std::string_view line = trimmed(text_.substr(0, end));
    text_.remove_prefix(std::min(end + 1, text_.size()));
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = line.find(':');
    if (colon == line.npos || colon + 1 == line.size())
      return text("line %d: '%s' is not KIND:FUNCTION, as in leak:main or *:test_*", number,
                  std::string(line).c_str());
    Rule rule{std::string(trimmed(line.substr(0, colon))),
              std::string(trimmed(line.substr(colon + 1)))};
    if (!is_kind(rule.kind))
      return text("line %d: there is no kind '%s'; there are %s", number, rule.kind.c_str(),
                  all_kinds().c_str());
    rules.push_back(std::move(rule));
  }
  rules_ = std::move(rules);
  return {};
}

bool Suppressions::match(const Finding& finding, const Frames& frames) const {
  const std::string_view kind = info(finding.kind).name;
  return std::ranges::any_of(rules_, [&](const Rule& rule) {
    if (rule.kind != "*" && rule.kind != kind) return false;
    for (const auto& place : frames)
      for (const Frame& frame : place)
        if (fnmatch(rule.function.c_str(), frame.function.c_str(), 0) == 0) return true;
    return false;
  });
}

}  // namespace uiw::check
