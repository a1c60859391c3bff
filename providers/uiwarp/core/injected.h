// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Who of the instruments wants to know what another one of them has injected.
#pragma once

#include <atomic>
#include <cstdint>

namespace uiw::core {

// A rule in this line of the file of --faults was carried out: of that queue pair or of none (0),
// and what became of what it met. Takes no lock. Thread: any.
using OnInjected = void (*)(uint32_t qp_num, int line, const char* what);
// Null: nobody.
inline constinit std::atomic<OnInjected> on_injected{nullptr};

}  // namespace uiw::core
