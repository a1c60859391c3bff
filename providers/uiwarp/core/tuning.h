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

// No longer than this. While things are deferred the engine looks in such intervals; where a
// virtual machine's timers cost 20 us each, that takes a good part of a processor. "Write rate 64
// B, one post each".
inline constexpr Nanoseconds kMostDeferred = 100 * kMicrosecond;
// From one post's end to the beginning of the next: nobody can have waited for an answer between
// them. And how many in a row are a burst: a few that belong together leave at once.
inline constexpr Nanoseconds kBurstGap = 500;
inline constexpr uint32_t kBurst = 8;
// A program that posts so many in a row, waits for completions no longer than this, and posts again
// goes on with its burst. "Write rate 64 B, acknowledged".
inline constexpr uint32_t kLongBurst = 48;
inline constexpr Nanoseconds kBurstPause = kMillisecond;
// Enough to be sent: a system call is a small part of what they cost then.
inline constexpr uint32_t kEnoughRequests = 64, kEnoughBytes = 64 * 1024;
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
// Calls until the path MTU is asked for again, which may change (RFC 5044 4.5): that costs a call.
// "Send latency 64 B".
inline constexpr uint32_t kCallsPerEmss = 64;

// Empty Reads that ask for acknowledgements, and other requests, outstanding at most when one more
// of the former is sent: with one alone the last messages of a burst wait for a second round trip.
// "Write bandwidth 64 KiB, acknowledged".
inline constexpr uint32_t kMostAcknowledgements = 2;

// How long a connection that the program ends waits for a peer to ask for what it has sent: a round
// trip, and what a process may wait for a processor. Only a peer that never asks takes all of it.
inline constexpr Nanoseconds kLastQuestion = 200 * kMillisecond;

// A thread of the program's that waits for what nobody tells it of sleeps so long between looks.
inline constexpr Nanoseconds kNap = 50 * kMicrosecond;

// How long ibv_dereg_mr waits for requests that are posted to be sent from the region, which fail
// otherwise. They wait for another thread, or for a peer that takes nothing.
inline constexpr Nanoseconds kLastSends = 200 * kMillisecond;

// --- The receiver (session/receiver.h) ---

// How often, and how many bytes, the engine receives directly before it looks after others.
// "64 KiB over 16 queue pairs".
inline constexpr int kDirectReceives = 4;
inline constexpr size_t kDirectBytes = 768 * 1024;
// Bytes that the engine waits for when more of a large segment is to come: few, since the rest can
// be received directly then. "Send bandwidth 64 KiB".
inline constexpr uint32_t kBeginning = 2048;

// --- What a payload's size decides (qp/) ---

// Bytes of payload that are copied behind their header though they need not be, at most: many small
// FPDUs make one piece of a system call then. 22 against 10 million messages per second. "Send rate
// 64 B, post lists of 64".
inline constexpr uint32_t kMostCopied = 512;
// Bytes of an FPDU that take so long to verify and place that completions before it do not wait.
// "Send bandwidth 64 KiB with CRC".
inline constexpr size_t kLongFpdu = 2048;
// Bytes of an FPDU still to come: fewer are collected and copied, more are placed as they come.
// "Send bandwidth 64 KiB".
inline constexpr size_t kMinPlacedByParts = 4096;
// Bytes of payload in a segment, without CRC: fewer are not worth direct placement, a length hint,
// or empty Writes before them (qp/stagger.h). "Send bandwidth 64 KiB".
inline constexpr uint32_t kLargePayload = 8192;

// --- Where the engine thread runs (engine/placement.h) ---

// Wakes that are judged together. "Send latency 64 B, events".
inline constexpr uint32_t kPlacementWindow = 16;
// Of latency traffic no more wakes than this found the engine awake, of a stream of middling pieces
// no more found it asleep.
inline constexpr uint32_t kFewWakes = 4;
// Bytes per wake, average of a window. Latency traffic has no more than the first, a stream has
// more than the second also where the engine sleeps. "Send latency 64 B, events" and "Send
// bandwidth 64 KiB".
inline constexpr uint32_t kLatencyBytes = 16 * 1024, kStreamBytes = 128 * 1024;
// Windows in a row that have to agree before the thread is placed anew.
inline constexpr uint32_t kAgreeingWindows = 2;
// Windows for which it stays then: the scheduler moves the other end, too.
inline constexpr uint32_t kRestWindows = 32;
// Windows of a stream in a row with its packets at the thread's own CPU, until that alone proves
// that the other end runs there. Some always come there: what an acknowledgement of ours permits
// the peer's TCP to send, loopback sends from where we acknowledged. "Send bandwidth 64 KiB".
inline constexpr uint32_t kOwnCpuWindows = 32;

// --- The engine's resources (engine/) ---

// Receives of a socket until the ring knows it by number: that costs two system calls in a socket's
// life, so that a short connection does not get one.
inline constexpr uint8_t kReceivesUntilFixed = 64;
// Receives in a row that found a buffer, until the kernel is given one fewer: else a burst of many
// sockets would leave all of them in turn for ever, in memory that falls out of the cache.
inline constexpr unsigned kReceivesPerBufferLess = 1024;

// --- Socket buffers (transport/socket_options.h) ---

// Bytes that one connection may have in flight: more than a second-level cache holds is copied from
// memory, at both ends. And where there are more than a few connections, which may all be busy at
// the same time. "64 KiB over 16 queue pairs".
inline constexpr int kSendBuffer = 768 * 1024, kReceiveBuffer = 512 * 1024;
inline constexpr int kSharedSocketBuffer = 256 * 1024;
inline constexpr unsigned kFewConnections = 3;

// --- Datagrams (datagram/) ---

// Bytes that a port's socket may hold in each direction: what comes while nobody receives is lost
// beyond that. "UD send bandwidth 4 KiB".
inline constexpr int kDatagramBuffer = 8 * 1024 * 1024;
// How long a post waits for room in a full socket until its datagrams are lost: longer than a
// network of 1 Gb/s takes for half of what a stock kernel's socket holds.
inline constexpr Nanoseconds kFullSocketWait = 20 * kMillisecond;
// How often a port is read, several datagrams at a time, before the engine looks after others.
inline constexpr int kDatagramReceives = 4;

// --- Faults (faults/watch.cc) ---

// How often a completion queue is looked at for a request that is to fail. An adapter needs as long
// for a retry.
inline constexpr Nanoseconds kFailingQueueLook = kMillisecond;

// How often it is looked for requests that have failed while a port is down by a rule. Time-outs
// are a second at least.
inline constexpr Nanoseconds kDownPortLook = 10 * kMillisecond;

// --- The end of a process (core/last_thread.h) ---

// How often it is looked for the program's threads once main()'s has ended alone. A script that
// waits for the process does not feel it.
inline constexpr Nanoseconds kLastThreadLook = 100 * kMillisecond;

// --- Shaking (shake/temper.h) ---

// So many completions of a work queue in a row are held by the same mood: enough for a program to
// depend on how they come, few enough for a short run to see several moods.
inline constexpr uint64_t kMoodCompletions = 32;
// What a completion is held for at most: about what the next poll takes, what an answer from the
// peer takes, and what a busy host takes.
inline constexpr Nanoseconds kShortHold = 20 * kMicrosecond, kHold = 200 * kMicrosecond,
                             kLongestHold = 2 * kMillisecond;
// Of completions that are held until there are many: until the next multiple of this.
inline constexpr Nanoseconds kGatheringTime = kMillisecond;
// How long ibv_req_notify_cq() takes at most: longer than an answer from the peer.
inline constexpr Nanoseconds kLongestArming = 300 * kMicrosecond;
// How many completions that are not owed a poll gives at most when it gives few; and how many of
// one work queue until it is another's turn.
inline constexpr uint64_t kFewCompletions = 3, kTurn = 4;
// Turns of a loop between the end of a Write and the rest of it (qp/place_shaken.h): a microsecond
// to 100, by the processor.
inline constexpr int kShortPlacingPause = 50, kLongPlacingPause = 1000;

// How late events of rdma_cm are at most (cm/lateness.h): longer than a first message takes, and
// than a busy host does.
inline constexpr Nanoseconds kShortLateness = 300 * kMicrosecond,
                             kLongestLateness = 5 * kMillisecond;

// --- Messages (core/explain.h) ---

// Of how many objects a process is told the same mistake. A server whose peers are wrong makes a
// queue pair for each.
inline constexpr uint32_t kMostExplained = 32;

}  // namespace uiw::core::tuning
