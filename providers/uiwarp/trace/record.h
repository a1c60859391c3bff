// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the file of --trace consists of: a header, and a ring of records of one size. The process
// writes them and never reads them back. Numbers are in the byte order of the host, which the magic
// number tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace uiw::trace {

enum class Kind : uint8_t {
  kNone = 0,          // not written yet
  kCreated = 1,       // a queue pair
  kDestroyed = 2,     // a queue pair
  kState = 3,         // ibv_modify_qp() has moved it
  kConnected = 4,     // it has got its TCP connection
  kSend = 5,          // a work request was posted to a send queue
  kReceive = 6,       // a receive was posted
  kCompletion = 7,    // it was polled
  kRefused = 8,       // posting failed: a work request and all behind it
  kAwaited = 9,       // a message came before there was a receive for it
  kPeerRefused = 10,  // the peer named memory that it may not use
  kCmEvent = 11,      // the program has taken an event of rdma_cm
};
inline constexpr uint8_t kLastKind = static_cast<uint8_t>(Kind::kCmEvent);

// Bits of Record::flags.
inline constexpr uint8_t kSignaled = 1;     // of a post: it completes with a completion of its own
inline constexpr uint8_t kHasReceived = 2;  // of a completion: of a receive

struct Work {
  uint64_t wr_id;
  uint64_t bytes;
  uint32_t vendor_err;
  uint32_t error;  // kRefused: errno
  uint64_t queue;  // receives, kCreated: the shared receive queue; 0: the queue pair's own
};

struct Addresses {
  uint8_t local[16];  // in6_addr, IPv4 mapped
  uint8_t peer[16];
  uint16_t local_port;  // host order
  uint16_t peer_port;
};

struct Record {
  uint64_t sequence;  // from 1; written last. 0: being written
  int64_t time;       // CLOCK_MONOTONIC, nanoseconds
  uint32_t qp;
  Kind kind;
  uint8_t opcode;  // kSend: ibv_wr_opcode; kCompletion: ibv_wc_opcode; kCreated: ibv_qp_type;
                   // kState: ibv_qp_state; kCmEvent: rdma_cm_event_type
  uint8_t status;  // kCompletion: ibv_wc_status
  uint8_t flags;
  union {
    Work work;            // all other kinds
    Addresses addresses;  // kConnected
  };
};
inline constexpr size_t kRecordSize = 64;
static_assert(sizeof(Record) == kRecordSize && std::is_trivially_copyable_v<Record>);

struct Header {
  static constexpr uint64_t kMagic = 0x3165'6361'7274'7501;  // changes with the layout

  uint64_t magic;
  uint64_t records;             // that the ring has room for
  int64_t monotonic, realtime;  // the same moment by both clocks, nanoseconds
  uint32_t pid;
  char program[20];  // as /proc/PID/comm
  char boot[40];     // of the host: where it is the same, monotonic times can be compared
};
inline constexpr size_t kHeaderSize = 4096;  // the ring begins behind it
static_assert(sizeof(Header) <= kHeaderSize && std::is_trivially_copyable_v<Header>);

// The most records of a file that are read: 1 GiB.
inline constexpr uint64_t kMostRecords = (uint64_t{1} << 30) / kRecordSize;

}  // namespace uiw::trace
