// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sockets that are registered with the ring ("registered files"). Each use of a descriptor takes
// and drops a reference of its socket; while the engine receives, threads that send on another
// processor do so, too, and the cache line of the count bounces between them. A receive from a
// registered socket takes no reference (doc/decisions/011).
//
// The ring holds a reference of such a socket until it is unregistered: closing the descriptor
// alone neither ends the connection nor frees its port.
#pragma once

#include <liburing.h>

#include <cstdint>

namespace uiw::engine {

// Thread: engine.
class FixedFiles {
 public:
  // More sockets than this in one process are received from by descriptor.
  static constexpr unsigned kCount = 256;

  // Without effect where the kernel has no such table, allows none as large, or drops its reference
  // of one socket only when operations of others have ended.
  void open(io_uring& ring);

  // The number of `fd`, or -1: none is free. A system call.
  int16_t add(int fd);
  // Unregisters the socket. No operation by this number may begin any more. A system call.
  void remove(int16_t number);

 private:
  io_uring* ring_ = nullptr;
  unsigned free_count_ = 0;    // stays 0 without a table
  int16_t free_[kCount] = {};  // last in, first out
};

}  // namespace uiw::engine
