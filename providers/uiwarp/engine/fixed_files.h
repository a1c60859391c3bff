// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sockets registered with the ring ("registered files"). Each use of a descriptor takes and drops a
// reference to its socket. Threads that send on another processor do so while the engine receives,
// and the cache line of the count bounces between them. A receive from a registered socket takes no
// reference (doc/decisions/011).
//
// The ring holds a reference to such a socket until it is unregistered: closing the descriptor
// alone neither ends the connection nor frees its port.
#pragma once

#include <liburing.h>

#include <cstdint>

namespace uiw::engine {

// Thread: engine.
class FixedFiles {
 public:
  // Further sockets are received from by descriptor.
  static constexpr unsigned kCount = 256;

  // Has no effect if the kernel has no such table, allows none of this size, or drops its reference
  // to one socket only after operations on other sockets have ended.
  void open(io_uring& ring);

  // Registers `fd` and returns its number, or -1 if none is free. One system call.
  int16_t add(int fd);
  // Unregisters the socket. No operation with this number may be started any more. One system call.
  void remove(int16_t number);

 private:
  io_uring* ring_ = nullptr;
  unsigned free_count_ = 0;    // stays 0 without a table
  int16_t free_[kCount] = {};  // last in, first out
};

}  // namespace uiw::engine
