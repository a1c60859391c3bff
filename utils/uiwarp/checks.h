// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What `uiwarp doctor` looks at, in groups.
#pragma once

#include "layout.h"
#include "report.h"

namespace uiw::tool {

// Kernel, io_uring, limits, congestion control, a place for the device tree. (check_host.cc)
void check_host(Report& report);
// rdma-core's libraries, our libraries, settings, real RDMA devices. (check_install.cc)
void check_install(const Layout& layout, Report& report);
// What a program sees under `uiwarp run`: devices, and a connection over loopback; and what it sees
// without, where /etc/ld.so.preload names us. (check_device.cc)
void check_device(const Layout& layout, Report& report);

}  // namespace uiw::tool
