// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "report.h"

#include <cstdio>

#include "json.h"

namespace uiw::tool {

void Report::add(Entry entry) {
  if (as_ == ReportAs::kText) {
    printf("%-5s %s\n", entry.mark, entry.what.c_str());
    if (!entry.advice.empty()) printf("      %s\n", entry.advice.c_str());
  }
  entries_.push_back(std::move(entry));
}

void Report::warn(const char* name, const std::string& what, const std::string& advice) {
  warnings_++;
  add({name, "warn", "warn", what, advice});
}

void Report::fail(const char* name, const std::string& what, const std::string& advice) {
  failures_++;
  add({name, "fail", "FAIL", what, advice});
}

bool Report::finish(const std::string& command) const {
  if (as_ == ReportAs::kJson) {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const Entry& entry : entries_) {
      nlohmann::ordered_json check = {
          {"name", entry.name}, {"result", entry.result}, {"what", entry.what}};
      if (!entry.advice.empty()) check["advice"] = entry.advice;
      checks.push_back(std::move(check));
    }
    nlohmann::ordered_json versions = nlohmann::ordered_json::object();
    for (const auto& [of, text] : versions_)
      if (!text.empty()) versions[of] = text;
    const nlohmann::ordered_json all = {{"failures", failures_},
                                        {"warnings", warnings_},
                                        {"versions", versions},
                                        {"checks", checks}};
    print_json(all);
  } else if (failures_ > 0) {
    printf("\n%d check(s) failed: see the lines marked FAIL.\n", failures_);
  } else {
    printf("\nAll is well%s. Start a program with: %s run PROGRAM ARGS...\n",
           warnings_ > 0 ? ", with the warnings above" : "", command.c_str());
  }
  return failures_ == 0;
}

}  // namespace uiw::tool
