// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the file of --trace consists of: a header, a ring of records of one size, and behind it the
// records of connections once more, where newer records do not take their place. The process writes
// them and never reads them back. Numbers are in the byte order of the host, which the magic number
// tells.
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
  kAsyncEvent = 12,   // the program has taken an event by ibv_get_async_event()
  kFault = 13,        // a rule of --faults was carried out
  kAgreed = 14,       // the MPA start-up frames of the queue pair's connection
  kFpdu = 15,         // one was sent or received
  kFpduRest = 16,     // of the last kFpdu of that queue pair and direction: more of its octets
  kStands = 17,       // as kConnected, told again; kAgreed comes behind it
  kSharedGone = 18,   // a shared receive queue was destroyed: another one may have its address now
  kDropped = 19,      // a receive that the queue pair had taken ended with it, or by RESET
};
inline constexpr uint8_t kLastKind = static_cast<uint8_t>(Kind::kDropped);

// Bits of Record::flags.
inline constexpr uint8_t kSignaled = 1;     // of a post: it completes with a completion of its own
inline constexpr uint8_t kHasReceived = 2;  // of a completion: of a receive
inline constexpr uint8_t kInitiator = 4;    // kAgreed: this end has sent the MPA Request
inline constexpr uint8_t kSent = 8;         // kFpdu, kFpduRest: and not received
inline constexpr uint8_t kInVain = 16;      // kAwaited: none came, and the connection ended

struct Work {
  uint64_t wr_id;
  uint64_t bytes;
  uint32_t vendor_err;
  union {
    uint32_t error;  // kRefused: errno; kCmEvent: its status
    uint32_t place;  // kCompletion, of a send queue: see uiwarp_cq_poll(); 0: it is not told
  };
  uint64_t
      queue;  // receives, kCreated, kSharedGone: the shared receive queue; 0: the queue pair's own
};

struct Addresses {
  uint8_t local[16];  // in6_addr, IPv4 mapped
  uint8_t peer[16];
  uint16_t local_port;  // host order
  uint16_t peer_port;
};

// Of MPA Request and Reply what is behind the key, which is always the same.
struct Agreed {
  int64_t began,
      agreed;  // when this end had the TCP connection, and the agreement: as Record::time
  uint8_t request[8], reply[8];  // from the flags on, the block of RFC 6581 included
};

struct Fpdu {
  // Of the octets of its direction before it, modulo 2^48; a trace cannot hold so much.
  uint32_t position_low;
  uint16_t position_high;
  uint16_t ulpdu_size;
  uint8_t head[32];  // of the ULPDU, Record::status octets of it; the rest in kFpduRest
};

struct Fault {
  uint32_t line;  // of the rule
  char what[36];  // what became of what it met
};

struct Record {
  uint64_t sequence;  // from 1; written last. 0: being written
  int64_t time;       // CLOCK_MONOTONIC, nanoseconds
  uint32_t qp;
  Kind kind;
  uint8_t opcode;  // kSend: ibv_wr_opcode; kCompletion: ibv_wc_opcode; kCreated: ibv_qp_type;
                   // kState: ibv_qp_state; kCmEvent: rdma_cm_event_type; kAsyncEvent:
                   // ibv_event_type
  uint8_t status;  // kCompletion: ibv_wc_status; kFpdu: octets of the ULPDU that are recorded
  uint8_t flags;
  union {
    Work work;            // all other kinds
    Addresses addresses;  // kConnected, kStands
    Agreed agreed;        // kAgreed
    Fpdu fpdu;            // kFpdu
    uint8_t rest[40];     // kFpduRest
    Fault fault;          // kFault
  };
};
inline constexpr size_t kRecordSize = 64;
static_assert(sizeof(Record) == kRecordSize && std::is_trivially_copyable_v<Record>);

struct Header {
  static constexpr uint64_t kMagic = 0x3165'6361'7274'7503;  // changes with the layout

  uint64_t magic;
  uint64_t records;             // that the ring has room for
  int64_t monotonic, realtime;  // the same moment by both clocks, nanoseconds
  uint32_t pid;
  char program[52];  // the name that it was started by
  char boot[40];     // of the host: where it is the same, monotonic times can be compared
  uint64_t kept;     // records behind the ring: kConnected, of the newest connections, or nothing
  uint64_t started;  // started_at() of pid; 0: not known
};
inline constexpr size_t kHeaderSize = 4096;  // the ring begins behind it
static_assert(sizeof(Header) <= kHeaderSize && std::is_trivially_copyable_v<Header>);

// The most records of a file that are read: 1 GiB.
inline constexpr uint64_t kMostRecords = (uint64_t{1} << 30) / kRecordSize;
inline constexpr uint64_t kMostKept = 4096;

}  // namespace uiw::trace
