// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The last seconds of a TCP connection whose queue pair has done with it. Closing a socket that has
// unread input makes the kernel send RST, which can destroy data, and a Terminate, that the peer
// has not read yet. So the input is read and dropped until the peer closes too (RFC 5040 6.2.1,
// conformance TE-11, TD-11), for a bounded time.
#pragma once

#include "engine/engine.h"
#include "transport/tcp_stream.h"

namespace uiw::session {

// Takes the stream over; FIN was sent or is sent now. A stranger may be left before the time is
// up, should there be too many. Thread: engine.
void linger(engine::Engine& engine, transport::StreamPtr stream, core::Nanoseconds at_most,
            engine::Standing whose);

}  // namespace uiw::session
