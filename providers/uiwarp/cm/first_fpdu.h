// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Builds the first FPDU on a stream for an end that has no queue pair to send it. Pure.
#pragma once

#include <cstdint>

#include "core/term_code.h"
#include "mpa/negotiator.h"
#include "startup/frames.h"

namespace uiw::cm {

// A Terminate. `crc`, `markers`: as negotiated for this end's sending. RFC 5040 4.8.
void set_terminate(startup::Outbox& outbox, core::TermCode code, bool crc, bool markers);
// The RTR frame that was agreed on, which must not be kNone. RFC 6581 5.
void set_rtr(startup::Outbox& outbox, const mpa::Agreement& agreement);

}  // namespace uiw::cm
