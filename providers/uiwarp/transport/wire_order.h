// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells ThreadSanitizer that everything that one end of a connection did before it sent happens
// before the other end has received. The kernel ensures that, but by system calls, which the
// sanitizer does not model. If both ends are in one process, each with its own engine, it would
// report a race between one end placing data and the other end's program reading it after its
// completion.
#pragma once

#include <sys/socket.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

#include "transport/addresses.h"
#endif

namespace uiw::transport {

#ifdef __SANITIZE_THREAD__

class WireOrder {
 public:
  WireOrder(const sockaddr_storage& local, const sockaddr_storage& peer)
      : wire_(&wires[port_of(local) ^ port_of(peer)]) {}  // the same one at both ends

  void before_send() const { __tsan_release(wire_); }
  void after_receive() const { __tsan_acquire(wire_); }

 private:
  inline static char wires[1 << 16];
  char* wire_;
};

#else

class WireOrder {
 public:
  WireOrder(const sockaddr_storage&, const sockaddr_storage&) {}

  void before_send() const {}
  void after_receive() const {}
};

#endif

}  // namespace uiw::transport
