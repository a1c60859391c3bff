// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The kinds of misuse that --check reports, and what is always said of each. doc/check.md has a
// section for every one.
#pragma once

#include <cstdint>
#include <span>

namespace uiw::check {

enum class Kind : uint8_t {
  kBufferInFlight,     // memory of a request was changed, deregistered or unmapped before its end
  kDestroyedInUse,     // a queue went with requests that nobody heard of
  kSendQueueFull,      // no request asks for a completion, so nothing ever leaves the queue
  kCqTooSmall,         // less room than what its queue pairs may complete
  kKeySwapped,         // an rkey where an lkey belongs
  kLocalProtection,    // an SGE that no region of this domain allows
  kInline,             // more inline bytes than the queue pair was made for
  kReceiveTooShort,    // a message is longer than its receive
  kAtomicMisaligned,   // an atomic operation on what is no aligned 8 bytes
  kDestroyOrder,       // something was destroyed while it was in use
  kLeak,               // something was never destroyed
  kWrongState,         // a call that the queue pair's state forbids
  kLostEvent,          // a thread waits for an event that does not come
  kNotAcknowledged,    // events that the program got and keeps what they name from going
  kSection,            // the rules of ibv_wr_start()
  kConcurrentUse,      // two threads in a queue that was made for one
  kInherited,          // a forked child used what its parent has made
  kAttributesMissing,  // of ibv_modify_qp(): adapters refuse the move without them
  kReadDepth,          // a Read or atomic where there are to be none
  kNoReceive,          // a message came and found no receive
  kRemoteAccess,       // the peer refused what a request asks of its memory
  kUsedAfterDestroy,   // an object that has gone, or goes at that moment
  kEventUnread,        // an asynchronous event that nobody read
  kUnmapped,           // memory that is registered was unmapped
};

struct KindInfo {
  Kind kind;
  const char* name;         // as scripts and suppressions say it
  const char* title;        // a few words
  const char* on_adapters;  // what happens there, a sentence
  const char* remedy;       // what to do, a sentence
};

// One for each, in the order of Kind.
std::span<const KindInfo> kinds();
const KindInfo& info(Kind kind);

}  // namespace uiw::check
