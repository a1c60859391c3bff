// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The last seconds of a TCP connection whose owner has done with it. Closing a socket that has
// unread input makes the kernel send RST, which can destroy data, and a Terminate, that the peer
// has not read yet. So the input is read and dropped until the peer closes too (RFC 5040 6.2.1,
// conformance TE-11, TD-11), for a bounded time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "transport/tcp_stream.h"

namespace uiw::transport {

// What the socket had no room for.
struct Unsent {
  std::unique_ptr<uint8_t[]> bytes;
  size_t begin = 0, end = 0;
};

// Takes the stream over. `rest` is sent, then FIN, unless that was sent already; RST when `rest`
// did not get out within `at_most`, which is for all of it. An unauthenticated one may be closed
// before that, should there be too many. Without memory it is closed at once. Thread: engine.
void lingering_close(engine::Engine& engine, StreamPtr stream, core::Nanoseconds at_most,
                     engine::Standing whose, Unsent rest = {});

}  // namespace uiw::transport
