// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "devices.h"

#include <cstdio>

#include "child.h"
#include "json.h"
#include "without_device.h"

namespace uiw::tool {
namespace {

constexpr int kLimitMs = 60000;  // hosts with containers have had thousands of devices

int print_found(const ChildResult& seen) {
  const auto found = nlohmann::ordered_json::parse(seen.output, nullptr, false);
  if (!found.is_array()) return seen.status ? seen.status : 1;  // the probe has said why
  nlohmann::ordered_json others = nlohmann::ordered_json::array();
  for (const WithoutDevice& one : without_device())
    others.push_back({{"interface", one.interface}, {"why", one.why}});
  print_json({{"devices", found}, {"without_device", others}});
  return seen.status;
}

}  // namespace

int devices(const Layout& layout, DevicesAs as) {
  if (layout.probe.empty()) {
    fprintf(stderr, "uiwarp: uiwarp-probe not found beside %s. Build or install uiwarp again.\n",
            layout.binary.c_str());
    return 125;
  }
  const ChildResult seen =
      run_child(layout, {layout.probe, "devices", as == DevicesAs::kJson ? "json" : "text"},
                kLimitMs, Visibility::kRun, Collected::kOutput);
  if (seen.status < 0 || seen.timed_out) {
    fprintf(stderr, "uiwarp: %s %s\n", layout.probe.c_str(),
            seen.timed_out ? "does not end" : "cannot be started");
    return 125;
  }
  if (as == DevicesAs::kJson) return print_found(seen);
  fputs(seen.output.c_str(), stdout);
  for (const std::string& line : lines_of(without_device())) printf("%s\n", line.c_str());
  return seen.status;
}

}  // namespace uiw::tool
