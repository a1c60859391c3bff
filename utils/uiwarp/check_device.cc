// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "checks.h"
#include "child.h"
#include "core/device_choice.h"
#include "core/settings.h"
#include "host_devices.h"
#include "system_wide.h"
#include "target.h"
#include "trust.h"
#include "without_device.h"

namespace uiw::tool {
namespace {

constexpr int kListLimitMs = 10000;
constexpr int kLoopbackLimitMs = 20000;

// What a helper that succeeded printed; messages, such as of another engine, come before.
std::string last_line(const std::string& output) {
  std::string last;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return last;
}

// What a helper said, on one line.
std::string said(const ChildResult& result) {
  if (result.timed_out) return "no answer within the time limit";
  std::string text;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (!text.empty()) text += "; ";
    text += line;
  }
  if (result.status >= 128)
    text += (text.empty() ? "" : "; ") + std::string("killed by signal ") +
            std::to_string(result.status - 128);
  return text.empty() ? "exit status " + std::to_string(result.status) : text;
}

// A fresh network namespace has lo, which is down.
bool is_lo_down(const std::vector<WithoutDevice>& without) {
  return std::ranges::any_of(without, [](const WithoutDevice& one) {
    return one.interface == "lo" && std::string_view(one.why) == "down";
  });
}

// An interface may come later; most often its name is wrong.
void warn_of_missing(const std::vector<WithoutDevice>& without, Report& report) {
  for (const WithoutDevice& one : without)
    if (one.is_missing)
      report.warn("missing_interfaces",
                  "UIWARP_DEVICES names " + one.interface + ", and there is no such interface",
                  "Correct the name, unless the interface appears later. `ip link` lists the "
                  "interfaces.");
}

bool check_visible(const Layout& layout, Report& report) {
  if (core::settings_error() != 0) {
    report.warn("devices",
                "devices: not checked, because no device can be opened while a setting is wrong",
                "Correct the setting and run `uiwarp doctor` again.");
    return false;
  }
  const ChildResult result = run_child(layout, {layout.probe, "devices"}, kListLimitMs);
  std::string names;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("uiw_", 0) == 0) names += " " + line.substr(0, line.find(' '));
  }
  if (result.status == 0 && !names.empty()) {
    report.ok("devices", "devices seen by libibverbs:" + names);
    return true;
  }
  report.fail("devices", "libibverbs sees no uiwarp device: " + said(result),
              "Run `UIWARP_LOG=debug " + command_of(layout) +
                  " devices`; doc/troubleshooting.md describes the possible causes.");
  return false;
}

void check_loopback(const Layout& layout, Report& report) {
  if (!core::is_chosen(core::settings().devices, "lo"))
    return report.warn("loopback",
                       "loopback connection: not tried, because UIWARP_DEVICES leaves "
                       "lo out",
                       "To try it, run `uiwarp doctor` without that setting.");
  const ChildResult result = run_child(layout, {layout.probe, "loopback"}, kLoopbackLimitMs);
  if (result.status == 0 && !result.timed_out)
    report.ok("loopback", "loopback connection: " + last_line(result.output));
  else
    report.fail("loopback", "loopback connection: " + said(result),
                "Run `UIWARP_LOG=debug " + command_of(layout) +
                    " doctor`. A packet filter on lo may also be the cause.");
}

// A library that cannot be preloaded does not stop a program: ld.so says why, in each, and goes on.
void check_system_wide(const Layout& layout, Report& report) {
  const std::string library = preloaded_system_wide();
  if (library.empty()) return;
  if (const std::string closed = closed_to_others(library); !closed.empty()) {
    report.fail(
        "system_wide",
        "/etc/ld.so.preload names " + library + ", but other users have no access to " + closed,
        "The programs of these users print an error. Give them access (chmod), or install uiwarp "
        "elsewhere.");
    return;
  }
  // Not one of which this command is a part, perhaps: so by the two files, not by its layout.
  for (const std::string& file : {library, directory_of(library) + "/libuiwarp.so.0"}) {
    if (access(file.c_str(), F_OK) != 0) continue;  // told below
    if (const Untrusted found = find_untrusted(file)) {
      report.fail("system_wide", "/etc/ld.so.preload names " + library + ", but " + found.said,
                  "Whoever can do that controls every program, also those of root. As root: " +
                      (found.mend.empty() ? "" : found.mend + "; or ") +
                      "`uiwarp disable`, and install uiwarp where only root can write.");
      return;
    }
  }
  const ChildResult result =
      run_child(layout, {layout.probe, "devices"}, kListLimitMs, Visibility::kSystemWide);
  if (lists_devices(result) && result.output.find("cannot be preloaded") == std::string::npos)
    report.ok("system_wide",
              "every program sees the devices, without `uiwarp run`: /etc/ld.so.preload names " +
                  library);
  else
    report.fail("system_wide",
                "/etc/ld.so.preload names " + library + ", which does not work: " + said(result),
                "As root: `uiwarp enable` to repair it, or `uiwarp disable`.");
}

}  // namespace

void check_device(const Layout& layout, Report& report) {
  // Already reported by check_install.
  if (!layout.complete() || layout.probe.empty() || stays_away()) return;
  const bool visible = check_visible(layout, report);
  std::vector<WithoutDevice> without = without_device();
  warn_of_missing(without, report);
  std::erase_if(without, [](const WithoutDevice& one) { return one.is_missing; });
  for (const std::string& line : lines_of(without)) report.ok("without_device", line);
  if (is_lo_down(without))
    report.warn("lo",
                "lo is down, as in a new network namespace: programs on this host cannot reach "
                "each other at 127.0.0.1 or at the host's own addresses",
                "As root of this network namespace: ip link set lo up.");
  else if (visible)
    check_loopback(layout, report);
  check_system_wide(layout, report);
}

}  // namespace uiw::tool
