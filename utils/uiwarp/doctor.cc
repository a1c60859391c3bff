// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "doctor.h"

#include <cstdio>

#include "build_config.h"
#include "checks.h"
#include "target.h"

namespace uiw::tool {

int doctor(const Layout& layout, ReportAs as) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Report report(as);
  report.version("uiwarp", UIWARP_VERSION);
  check_host(report);
  check_install(layout, report);
  check_device(layout, report);
  return report.finish(command_of(layout)) ? 0 : 1;
}

}  // namespace uiw::tool
