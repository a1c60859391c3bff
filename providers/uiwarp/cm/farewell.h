// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The last words of MPA start-up to a peer, then an orderly end: octets, FIN, and only when the
// peer has closed, too, or had time for it, the end of the socket.
#pragma once

#include "cm/startup_io.h"
#include "core/clock.h"
#include "core/term_code.h"

namespace uiw::cm {

// Both take over the stream, and give the peer `at_most` to close. Thread: engine.

// RFC 5044 7.1.2(2): a Reply with R=1.
void say_reject(engine::Engine& engine, StreamPtr stream, const mpa::StartupFrame& reply,
                core::Nanoseconds at_most);

// RFC 6581 9: an end that cannot go on after the Reply says so in a Terminate, the first FPDU on
// the stream, with CRC and markers as the frames agreed on for what it sends.
void say_terminate(engine::Engine& engine, StreamPtr stream, core::TermCode code, bool crc,
                   bool markers, core::Nanoseconds at_most);

}  // namespace uiw::cm
