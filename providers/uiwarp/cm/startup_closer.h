// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ends a connection in MPA start-up in an orderly way: sends the last frame and FIN, and closes the
// socket when the peer has closed its side or the time limit has passed.
#pragma once

#include "cm/startup_io.h"
#include "core/clock.h"
#include "core/term_code.h"

namespace uiw::cm {

// Both take over the stream and wait up to `at_most` for the peer to close. Thread: engine.

// RFC 5044 7.1.2(2): a Reply with R=1.
void send_reject(engine::Engine& engine, StreamPtr stream, const mpa::StartupFrame& reply,
                 core::Nanoseconds at_most);

// RFC 6581 9: an end that fails after the Reply sends a Terminate. It is the first FPDU on the
// stream, with CRC and markers as negotiated for what this end sends.
void send_terminate(engine::Engine& engine, StreamPtr stream, core::TermCode code, bool crc,
                    bool markers, core::Nanoseconds at_most);

}  // namespace uiw::cm
