// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The file of --faults: one rule a line (doc/faults.md). Pure.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "faults/events.h"

namespace uiw::faults {

// Which of the events that a rule is for it meets.
enum class When : uint8_t {
  kAlways,       // each
  kNth,          // the Nth, once in each scope
  kEvery,        // the Nth, the 2Nth, ...
  kProbability,  // each with this probability, by the seed
};

enum class Action : uint8_t {
  kErrno,        // a call fails
  kStatus,       // a request completes with an error, and its queue pair fails
  kDelay,        // the completion of a request is handed out later, or a datagram comes later
  kDrop,         // a datagram is lost
  kDuplicate,    // a datagram comes twice
  kReorder,      // a datagram comes behind the next one
  kReject,       // the peer's program rejects a connection
  kTimeOut,      // nobody answers who is to be connected to
  kUnreachable,  // there is no way to who is to be connected to
  kReset,        // a connection is reset when it has carried so much
  kPortDown,     // the port of a device is down
  kAsync,        // an asynchronous event comes
  kShiftGids,    // GIDs are at another index
  kOverrun,      // a completion is lost
  kPace,         // requests leave later
};

// Something that rules may meet.
struct Occasion {
  Event event{};
  uint16_t port = 0;  // of a connection by rdma_cm: that of who is asked for it
  in6_addr peer{};    // of kDeparture
};

struct Rule {
  int line = 0;
  std::string text;  // of the line, without its comment
  Event event{};
  When when = When::kAlways;
  uint64_t number = 0;     // of kNth and kEvery; from 1
  double probability = 0;  // of kProbability; above 0, at most 1
  Action action{};
  int error = 0;                          // of kErrno
  ibv_wc_status status{};                 // of kStatus
  core::Nanoseconds least = 0, most = 0;  // of kDelay and kPace
  uint16_t port = 0;                      // of who is asked for a connection; 0: any, and by number
  uint64_t bytes = 0;                     // of kReset
  std::string device;                     // or "*"; of Event::kTime
  core::Nanoseconds at = 0;               // of Event::kTime: from start_clock() on
  core::Nanoseconds lasts = 0;            // of kPortDown; 0: for good
  ibv_event_type async{};                 // of kAsync
  in6_addr peer{};                        // of kDeparture; IPv4 mapped; all zero: any
  uint64_t rate = 0;                      // of kPace, bits a second; 0: any

  bool is_for(const Occasion& happens) const {
    return event == happens.event && (port == 0 || port == happens.port) &&
           (event != Event::kDeparture || IN6_IS_ADDR_UNSPECIFIED(&peer) ||
            IN6_ARE_ADDR_EQUAL(&peer, &happens.peer));
  }
};

struct Rules {
  uint64_t seed = 0;
  uint64_t edition = 0;    // which ones of the process these are: counts begin anew with each
  std::vector<Rule> list;  // in the order of the file
  std::string name;        // of the file; "none": there is no rule
};

inline constexpr core::Nanoseconds kLongestDelay = 60 * core::kSecond;
inline constexpr core::Nanoseconds kLatest = 86400 * core::kSecond;

// Parses the text of a file. Returns the empty string, or what is wrong: the line, the word, and
// what is allowed; `out` is undefined then.
std::string parse(std::string_view text, Rules& out);

// What a rule does, in a sentence.
std::string explain(const Rule& rule);

}  // namespace uiw::faults
