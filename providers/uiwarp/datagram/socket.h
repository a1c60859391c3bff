// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UDP sockets for datagrams: opened so that they tell how each datagram came, and read several
// datagrams at a time.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <span>

#include "core/bytes.h"
#include "core/result.h"
#include "datagram/grh.h"

namespace uiw::datagram {

// Of the sockets at our ports: AF_INET6, which knows IPv4 addresses in their mapped form, or
// AF_INET on a host without IPv6. One system call, once. Thread: any.
sa_family_t socket_family();

// All of the following make a non-blocking socket with the largest buffers that the host gives.

// At this port of every address. EADDRINUSE: it is another program's; EMFILE, ENFILE, ENOBUFS.
// Thread: any.
core::Result<int> open_port(uint16_t port);
// At the groups' port, for datagrams to this group that come by this interface; others may do the
// same. ENODEV: no such interface; ENOBUFS: more groups than the host allows; EMFILE, ENFILE,
// EAFNOSUPPORT. Thread: any.
core::Result<int> open_group(const in6_addr& group, unsigned ifindex);
// Its host leaves the group unless others are in it, whoever has copies of the descriptor. Thread:
// any.
void leave_group(int fd, const in6_addr& group, unsigned ifindex);

struct Arrival {
  Envelope envelope;
  Header header;
  core::Bytes payload;
};

// Told of what was received. Thread: the one that receives.
class Receiver {
 public:
  // It is gone when this returns.
  virtual void on_arrival(const Arrival& arrival) = 0;

 protected:
  ~Receiver() = default;
};

// Room in which receive() reads so many bytes' worth of a datagram: the header, the largest
// payload, and one byte more, so that a larger one shows.
inline constexpr size_t kReceiveRoom = 4224;
static_assert(kReceiveRoom > kHeaderSize + kMostPayload);

enum class Received {
  kAll,   // nothing more was there
  kSome,  // as many as there was room for
};

// Reads what has come into `buffer`, several at once, and tells of each that has a header of ours
// and comes from the port of the queue pair that it names as its sender; others are counted. One
// system call. `bytes` grows by what came. Thread: any, with a buffer of its own.
Received receive(int fd, std::span<uint8_t> buffer, Receiver& receiver, uint64_t& bytes);

}  // namespace uiw::datagram
