// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a rule of --faults may meet, by the names that rules have for it. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "faults/words.h"

namespace uiw::faults {

// Calls, by verb=NAME, requests, by op=NAME, and connections. In the order of the tables.
enum class Event : uint8_t {
  kOpenDevice,
  kQueryDevice,
  kQueryPort,
  kAllocPd,
  kRegMr,
  kReregMr,
  kAllocMw,
  kCreateAh,
  kCreateCq,
  kCreateSrq,
  kCreateQp,
  kModifySrq,
  kPostSrqRecv,
  kModifyQp,
  kQueryQp,
  kPostSend,
  kPostRecv,
  kResizeCq,
  kPollCq,
  kReqNotifyCq,
  kSend,
  kWrite,
  kRead,
  kAtomic,
  kRecv,
  kUdSend,
  kUdRecv,
  kConnect,
  kAccept,
  kCompletion,
  kDeparture,  // of a request, to a host
  kTime,       // of rules that meet no event, but a time
};
inline constexpr size_t kEvents = static_cast<size_t>(Event::kTime) + 1;

// Whose events are counted together, in their own order.
enum class Scope : uint8_t {
  kProcess,          // all of the process
  kQueuePair,        // those of each queue pair
  kCompletionQueue,  // those of each completion queue
};

// How a call tells that it failed.
enum class Failure : uint8_t {
  kNull,      // NULL, and errno
  kErrno,     // the errno itself
  kNegative,  // a negative number
  kNone,      // it is no call
};

struct EventInfo {
  Form form;
  const char* name;   // "create_cq", "WRITE"
  const char* title;  // "ibv_create_cq()", "RDMA Write"
  Scope scope;
  Failure failure;
};
const EventInfo& info(Event event);
std::span<const EventInfo> event_table();  // by value of Event

// Which one a request of a send queue is. False: none that rules know (LOCAL_INV, BIND_MW, no
// opcode at all).
bool event_of(ibv_wr_opcode opcode, Event& event);

struct Name {
  const char* name;
  int value;
};
std::span<const Name> status_names();           // without IBV_WC_; of a request that fails
std::span<const Name> datagram_status_names();  // those that the Send of a datagram may have
std::span<const Name> receive_status_names();   // those that a receive may have
std::span<const Name> errno_names();
std::span<const Name> async_names();  // without IBV_EVENT_; of devices and ports
// "ENOMEM" and so on, of one that is in the table.
const char* name_of(std::span<const Name> names, int value);

}  // namespace uiw::faults
