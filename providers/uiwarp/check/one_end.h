// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One thread ends the process.
#pragma once

namespace uiw::check {

// Who ends the process calls it. Another thread that does so later waits in it for ever, as in the
// C library from glibc 2.41 on; before, it would end the process while the first one writes the
// report. The same thread may call it again.
void wait_unless_first();

}  // namespace uiw::check
