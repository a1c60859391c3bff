// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Why a work request failed: the vendor_err of every failed completion. A status has a name in the
// verbs manual; a cause says what happened here. Values never change their meaning. A Terminate
// that the peer or this end sent is a cause of its own: see cause_of_terminate(). For flushed
// requests the cause says what moved the queue pair to its error state.
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

  // the peer, and the path to it
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
// The cause for a Terminate that this end has received or sent.
constexpr Cause cause_of_terminate(End from, TermCode code) {
  const Cause base = from == End::kPeer ? Cause::kPeerTerminated : Cause::kTerminatedHere;
  return static_cast<Cause>(static_cast<uint32_t>(base) | static_cast<uint32_t>(code));
}

struct CauseInfo {
  Cause cause;
  const char* name;
  const char* text;  // what happened, and what to do
};
// All causes, ordered by value.
std::span<const CauseInfo> cause_table();

// Null: no cause has this value. For a cause with a Terminate code, returns the row without it.
const CauseInfo* find_cause(uint32_t vendor_err);

}  // namespace uiw::core
