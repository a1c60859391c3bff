// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The numbers that adapt what uiwarp does to what a program does: unit, reason, and the row of
// utils/bench that shows it. None of them changes what a program may rely on, but kMostDeferred,
// which stands under README's Limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/clock.h"

namespace uiw::core::tuning {

// --- Who busy-polls (progress/grant_policy.h) ---

// Empty polls between two arrivals: a program that polls once or twice after each event does not
// busy-poll. "Send latency 64 B".
inline constexpr uint32_t kPollsOfBusyPoller = 32;
// Arrivals in a row, or full sockets, that have to find a busy poller before a lease is granted: a
// grant and its revocation cost more than four receives by the engine. "Send latency 64 B, events".
inline constexpr uint32_t kArrivals = 4;
// What completes something within this time after the arrival before, and is no more than a page
// with its headers, leaves a poller that shares its processor no time for empty polls: one poll
// counts. "Send latency 64 B" on one processor.
inline constexpr Nanoseconds kSoon = 50 * kMicrosecond;
inline constexpr size_t kSmallArrival = 4096 + 128;  // bytes
// A stream that is full every 20 to 50 us: full sockets count together within this time.
// "Send bandwidth 64 KiB".
inline constexpr Nanoseconds kFullSocketsWithin = 10 * kMillisecond;
// Arrivals whose own queues nobody polled, until a busy poller of other queues is looked for; and
// bytes sent for each of them, at most, for it to be worth a poller's time: the answer to a Read of
// 64 KiB. "Write latency 64 B".
inline constexpr uint32_t kArrivalsPerForeignLook = 8;
inline constexpr uint64_t kForeignAnswer = 64 * 1024 + 1024;

// --- Leases (progress/lease.h) ---

// A lease that nobody used for so long ends. Longer than a poller is away that deals with what it
// found; the peer's Writes may lie in the socket meanwhile. "Send bandwidth 64 KiB".
inline constexpr Nanoseconds kLeaseSilence = kMillisecond;
// Queue pairs of one lease: more sockets are looked at faster by one wait in the kernel.
inline constexpr size_t kMostLeased = 16;
// Rounds of a lease in which a queue pair got no bytes, about 5 ms: then it costs the others a
// system call per round for nothing. "64 KiB over 16 queue pairs".
inline constexpr uint32_t kIdleRounds = 2048;
// How long a poller leaves a full socket alone, so that the next call is worth it.
// "Send bandwidth 64 KiB".
inline constexpr Nanoseconds kRetryFullSocket = 10 * kMicrosecond;
// Empty polls until the processor is offered to others, which may be what is waited for: about
// 10 us, with and without a lease. "Send latency 64 B" on one processor.
inline constexpr uint32_t kPollsPerYield = 1024, kLeasedPollsPerYield = 32;

// --- What is deferred to be sent with others (progress/deferral.h) ---

// No longer than this. A poll costs a system call in every half of it. "Write rate 64 B, one post
// each".
inline constexpr Nanoseconds kMostDeferred = 100 * kMicrosecond;
// From one post's end to the beginning of the next: nobody can have waited for an answer between
// them. And how many in a row are a burst: a few that belong together leave at once.
inline constexpr Nanoseconds kBurstGap = 500;
inline constexpr uint32_t kBurst = 8;
// Enough to be sent: a system call is a small part of what they cost then.
inline constexpr uint32_t kEnoughRequests = 64, kEnoughBytes = 256 * 1024;
// Bytes of a call that may well take longer than kMostDeferred: the engine would be woken in the
// middle of it, for nothing. "4 KiB over 1 queue pair".
inline constexpr uint32_t kLongSend = 64 * 1024;
// Posts of a burst, or turns of the sender that coalesce Reads, that defer nothing after the engine
// had to send what everybody had left: at first, and when that happens again and again.
inline constexpr uint32_t kFirstBackoff = 64, kMostBackoff = 4096;
// Posts of a burst without a lease until one is asked for again.
inline constexpr uint32_t kAskForLease = 256;
// Reads and atomics are left to be coalesced while that many times as many are outstanding, until
// there are enough. "Read bandwidth 64 KiB".
inline constexpr uint32_t kFewRequests = 4, kEnoughCoalesced = 16;

// --- The sender (session/sender.h) ---

// Calls that a poster makes of a backlog, so that ibv_post_send() returns; and calls that the
// engine makes for one queue pair before it looks after others.
inline constexpr int kPosterShare = 4, kEngineShare = 4;

}  // namespace uiw::core::tuning
