// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A plain verbs program: it knows nothing of uiwarp and sees what any application sees.
#pragma once

namespace uiw::probe {

enum class Form { kText, kJson };

// Prints a table, or a JSON array, of the RDMA devices. 0, or 1 when there is none or one of them
// cannot be used.
int list_devices(Form form);

// Connects two processes over 127.0.0.1 by rdma_cm, exchanges 64 octets both ways, compares them
// and disconnects; prints one line. 0, or 1 with a sentence on standard error.
int loopback();

}  // namespace uiw::probe
