// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "doctor.h"

#include <cstdio>

#include "checks.h"

namespace uiw::tool {

void Report::ok(const std::string& what) {
  printf("ok    %s\n", what.c_str());
}

void Report::warn(const std::string& what, const std::string& advice) {
  warnings_++;
  printf("warn  %s\n      %s\n", what.c_str(), advice.c_str());
}

void Report::fail(const std::string& what, const std::string& advice) {
  failures_++;
  printf("FAIL  %s\n      %s\n", what.c_str(), advice.c_str());
}

int doctor(const Layout& layout) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Report report;
  check_host(report);
  check_install(layout, report);
  check_device(layout, report);
  if (report.failures() > 0) {
    printf("\n%d check(s) failed: see the lines marked FAIL.\n", report.failures());
    return 1;
  }
  printf("\nAll is well%s. Start a program with: uiwarp run PROGRAM ARGS...\n",
         report.warnings() > 0 ? ", with the warnings above" : "");
  return 0;
}

}  // namespace uiw::tool
