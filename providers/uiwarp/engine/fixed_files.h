// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sockets that the ring knows by a number of its own ("registered files"). Each use of a descriptor
// counts a reference of its socket up and down; while the engine receives, those who send on
// another processor do so, too, and the count goes to and fro between them. A receive by number
// counts nothing (doc/decisions/011).
//
// The ring holds such a socket until it is told to let go: closing the descriptor alone neither
// ends the connection nor frees its port.
#pragma once

#include <liburing.h>

#include <cstdint>

namespace uiw::engine {

// Thread: engine.
class FixedFiles {
 public:
  // More sockets than this in one process are received from by descriptor.
  static constexpr unsigned kCount = 256;

  // Without effect where the kernel has no such table, allows none as large, or lets go of one
  // socket only when others are done with.
  void open(io_uring& ring);

  // The number of `fd`, or -1: none is free. A system call.
  int16_t add(int fd);
  // Lets go of the socket. No operation by this number may begin any more. A system call.
  void remove(int16_t number);

 private:
  io_uring* ring_ = nullptr;
  unsigned free_count_ = 0;    // stays 0 without a table
  int16_t free_[kCount] = {};  // last in, first out
};

}  // namespace uiw::engine
