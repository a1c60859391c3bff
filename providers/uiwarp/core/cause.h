// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Why a work request did not complete: the vendor_err of every completion that failed. A status
// says what the verbs manual has a name for, a cause what happened here. Values never change their
// meaning. What the peer or this end told the other by a Terminate is a cause by itself: see
// cause_of_terminate(). Those of flushed requests say what took the queue pair to its error state.
#pragma once

#include <cstdint>
#include <span>

#include "core/term_code.h"

namespace uiw::core {

enum class Cause : uint32_t {
  kNone = 0,

  // memory of this end
  kKeyUnknown = 0x10,
  kKeyDeregistered = 0x11,
  kKeyOfOtherDomain = 0x12,
  kKeyOfWindow = 0x13,
  kRightMissing = 0x14,
  kOutOfBounds = 0x15,
  kAddressWraps = 0x16,
  kNotMapped = 0x17,
  kKeyChanged = 0x18,

  // the request itself
  kReceiveTooShort = 0x20,
  kDatagramTooLong = 0x21,
  kNoReadsGranted = 0x22,
  kNoImmediates = 0x23,
  kBindInvalid = 0x24,
  kBindOfOtherDomain = 0x25,
  kBindNotAllowed = 0x26,
  kBindBound = 0x27,
  kInvalidateForeign = 0x28,
  kInvalidateImpossible = 0x29,
  kNoMemory = 0x2a,

  // the peer, and the way there
  kPeerNotFound = 0x30,
  kPeerSilent = 0x31,
  kPeerUnreachable = 0x32,
  kPeerGone = 0x33,
  kConnectionBroken = 0x34,
  kMessageCutOff = 0x35,

  // the end of the queue pair
  kPeerDisconnected = 0x40,
  kDisconnected = 0x41,
  kModifiedToError = 0x42,
  kQueueOverflow = 0x43,
  kCloseTimedOut = 0x44,
  kNotConnected = 0x45,
  kInjected = 0x46,

  // added to a Terminate code
  kPeerTerminated = 0x10000,
  kTerminatedHere = 0x20000,
};

enum class End { kPeer, kHere };
// A Terminate that this end received from the peer, or sent.
constexpr Cause cause_of_terminate(End from, TermCode code) {
  const Cause base = from == End::kPeer ? Cause::kPeerTerminated : Cause::kTerminatedHere;
  return static_cast<Cause>(static_cast<uint32_t>(base) | static_cast<uint32_t>(code));
}

struct CauseInfo {
  Cause cause;
  const char* name;
  const char* text;  // what happened, and what to do
};
// All of them, by value.
std::span<const CauseInfo> cause_table();

// Null: no cause has this value. Of those with a Terminate code the row that it is added to.
const CauseInfo* find_cause(uint32_t vendor_err);

}  // namespace uiw::core
