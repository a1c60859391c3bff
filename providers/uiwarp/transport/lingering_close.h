// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ends a TCP connection that its owner has given up. Closing a socket that has unread input makes
// the kernel send RST, which can destroy data, or a Terminate, that the peer has not read yet. So
// the input is read and discarded until the peer closes, too (RFC 5040 6.2.1, conformance TE-11,
// TD-11), for a bounded time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "transport/tcp_stream.h"

namespace uiw::transport {

// Bytes for which the socket had no room.
struct Unsent {
  std::unique_ptr<uint8_t[]> bytes;
  size_t begin = 0, end = 0;
};

// Takes the stream over. Sends `rest`, then FIN unless that was sent already. `at_most` is the time
// limit for everything; RST if `rest` was not sent within it. An unauthenticated connection may be
// closed earlier if there are too many. Without memory the stream is closed at once. Thread:
// engine.
void lingering_close(engine::Engine& engine, StreamPtr stream, core::Nanoseconds at_most,
                     engine::Standing whose, Unsent rest = {});

}  // namespace uiw::transport
