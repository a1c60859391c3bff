// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The numbers that adapt uiwarp to the behaviour of programs: unit, reason, and the row of
// utils/bench that shows the effect. None of them changes what a program may rely on, except
// kMostDeferred, which is listed under README's Limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/clock.h"

namespace uiw::core::tuning {

// --- Who busy-polls (progress/grant_policy.h) ---

// Empty polls between two arrivals: a program that polls once or twice after each event does not
// busy-poll. "Send latency 64 B".
inline constexpr uint32_t kPollsOfBusyPoller = 32;
// How many consecutive arrivals, or full sockets, must find a busy poller before a lease is
// granted: a grant and its revocation cost more than four receives by the engine. "Send latency 64
// B, events".
inline constexpr uint32_t kArrivals = 4;
// An arrival that completes something, comes within this time after the previous one, and has no
// more than a page with headers, leaves a poller that shares its processor no time for empty polls:
// one poll counts. "Send latency 64 B" on one processor.
inline constexpr Nanoseconds kSoon = 50 * kMicrosecond;
inline constexpr size_t kSmallArrival = 4096 + 128;  // bytes
// Full sockets count together within this time; a busy stream is full every 20 to 50 us. "Send
// bandwidth 64 KiB".
inline constexpr Nanoseconds kFullSocketsWithin = 10 * kMillisecond;
// After how many arrivals whose own CQs nobody polled a busy poller of a foreign CQ is looked for;
// and the limit of bytes sent per arrival for this to be worth a poller's time: the answer to a
// Read of 64 KiB. "Write latency 64 B".
inline constexpr uint32_t kArrivalsPerForeignLook = 8;
inline constexpr uint64_t kForeignAnswer = 64 * 1024 + 1024;

// --- Leases (progress/lease.h) ---

// A lease that was unused for this long ends. This is longer than a poller is away to process what
// it found; the peer's Writes may lie in the socket meanwhile. "Send bandwidth 64 KiB".
inline constexpr Nanoseconds kLeaseSilence = kMillisecond;
// Queue pairs per lease: for more sockets, one wait in the kernel is faster.
inline constexpr size_t kMostLeased = 16;
// After this many rounds of a lease without bytes, about 5 ms, a queue pair leaves it: it costs the
// others a system call per round for nothing. "64 KiB over 16 queue pairs".
inline constexpr uint32_t kIdleRounds = 2048;
// How long a poller leaves a full socket alone, so that the next call can send enough. "Send
// bandwidth 64 KiB".
inline constexpr Nanoseconds kRetryFullSocket = 10 * kMicrosecond;
// After how many empty polls the processor is yielded, as the thread that the program waits for may
// need it: about 10 us, with and without a lease. "Send latency 64 B" on one processor.
inline constexpr uint32_t kPollsPerYield = 1024, kLeasedPollsPerYield = 32;

// --- What is deferred to be sent with others (progress/deferral.h) ---

// The longest time that something is deferred. While anything is deferred, the engine looks at such
// intervals. In virtual machines whose timers cost 20 us each, that takes a good part of a
// processor. "Write rate 64 B, one post each".
inline constexpr Nanoseconds kMostDeferred = 100 * kMicrosecond;
// The longest gap from the end of one post to the beginning of the next in a burst: too short to
// have waited for an answer. And the number of such posts that make a burst: fewer, which may
// belong together, are sent at once.
inline constexpr Nanoseconds kBurstGap = 500;
inline constexpr uint32_t kBurst = 8;
// A program that makes this many posts in a row, waits for completions no longer than this, and
// posts again continues its burst. "Write rate 64 B, acknowledged".
inline constexpr uint32_t kLongBurst = 48;
inline constexpr Nanoseconds kBurstPause = kMillisecond;
// Deferred posts are sent when there are this many: a system call is then a small part of their
// cost.
inline constexpr uint32_t kEnoughRequests = 64, kEnoughBytes = 64 * 1024;
// For how many posts of a burst, or turns of the sender that coalesce Reads, nothing is deferred
// after the engine had to send what was deferred: the first time, and at most when that is
// repeated.
inline constexpr uint32_t kFirstBackoff = 64, kMostBackoff = 4096;
// A lease is requested once per this many posts of a burst without one.
inline constexpr uint32_t kAskForLease = 256;
// Reads and atomics wait to be coalesced while kFewRequests times as many are outstanding, until
// there are kEnoughCoalesced. "Read bandwidth 64 KiB".
inline constexpr uint32_t kFewRequests = 4, kEnoughCoalesced = 16;

// --- The sender (session/sender.h) ---

// Send calls that a poster makes for a backlog, so that ibv_post_send() returns; and send calls
// that the engine makes for one queue pair before it serves others.
inline constexpr int kPosterShare = 4, kEngineShare = 4;
// Send calls until the EMSS is queried again, which may change (RFC 5044 4.5); the query is a
// system call. "Send latency 64 B".
inline constexpr uint32_t kCallsPerEmss = 64;

// An empty Read that asks for acknowledgements is sent only while fewer requests than this are
// outstanding, whatever they are for. With a limit of one, the last messages of a burst would wait
// for a second round trip. "Write bandwidth 64 KiB, acknowledged".
inline constexpr uint32_t kMostAcknowledgements = 2;

// How long a connection that the program ends waits until the peer has asked whether what it sent
// has arrived: a round trip, plus the time that a process may wait for a processor. Only a peer
// that never asks uses up all of it.
inline constexpr Nanoseconds kLastQuestion = 200 * kMillisecond;

// How long a thread of the program sleeps between looks when it waits for something without a
// notification.
inline constexpr Nanoseconds kNap = 50 * kMicrosecond;

// How long ibv_dereg_mr waits until requests posted from the region are sent; afterwards they fail.
// They may be waiting for another thread, or for a peer that accepts nothing.
inline constexpr Nanoseconds kLastSends = 200 * kMillisecond;

// --- The receiver (session/receiver.h) ---

// How often, and how many bytes, the engine receives directly before it serves others. "64 KiB over
// 16 queue pairs".
inline constexpr int kDirectReceives = 4;
inline constexpr size_t kDirectBytes = 768 * 1024;
// How many bytes the engine receives at most while more of a large segment is to come: few, since
// the rest can then be received directly. "Send bandwidth 64 KiB".
inline constexpr uint32_t kBeginning = 2048;

// --- What a payload's size decides (qp/) ---

// The largest payload, in bytes, that is copied behind its header although it could be sent in
// place: many small FPDUs then make one piece of a system call. 22 instead of 10 million messages
// per second. "Send rate 64 B, post lists of 64".
inline constexpr uint32_t kMostCopied = 512;
// Before an FPDU with more bytes than this, earlier completions are pushed: it takes long to verify
// and place. "Send bandwidth 64 KiB with CRC".
inline constexpr size_t kLongFpdu = 2048;
// Missing bytes of an FPDU: fewer are collected and copied, this many or more are placed as they
// arrive. "Send bandwidth 64 KiB".
inline constexpr size_t kMinPlacedByParts = 4096;
// Payload bytes of a segment, without CRC, from which direct placement, a length hint and empty
// Writes before it (qp/stagger.h) are worth it. "Send bandwidth 64 KiB".
inline constexpr uint32_t kLargePayload = 8192;

// --- Where the engine thread runs (engine/placement.h) ---

// Wakes per window; a window is judged as a whole. "Send latency 64 B, events".
inline constexpr uint32_t kPlacementWindow = 16;
// With latency traffic at most this many wakes per window found the engine awake; with a stream of
// medium pieces at most this many found it asleep.
inline constexpr uint32_t kFewWakes = 4;
// Bytes per wake, averaged over a window. Latency traffic has at most the first; traffic with more
// than the second is a stream even if the engine sleeps. "Send latency 64 B, events" and "Send
// bandwidth 64 KiB".
inline constexpr uint32_t kLatencyBytes = 16 * 1024, kStreamBytes = 128 * 1024;
// Consecutive windows that must agree before the thread is moved.
inline constexpr uint32_t kAgreeingWindows = 2;
// Windows for which it then stays: the scheduler moves the other end, too.
inline constexpr uint32_t kRestWindows = 32;
// Consecutive windows of a stream with packets on the thread's own CPU that prove by themselves
// that the other end runs there. Some packets always arrive there: data that our acknowledgement
// permits the peer's TCP to send is sent by loopback on the CPU where we acknowledged. "Send
// bandwidth 64 KiB".
inline constexpr uint32_t kOwnCpuWindows = 32;

// --- The engine's resources (engine/) ---

// Receives of a socket until it is registered with the ring: that costs two system calls per
// socket, too much for a short connection.
inline constexpr uint8_t kReceivesUntilFixed = 64;
// Consecutive receives that found a buffer, until the kernel is given one fewer. Otherwise, after a
// burst of many sockets, it would use all buffers in turn forever, in memory that falls out of the
// cache.
inline constexpr unsigned kReceivesPerBufferLess = 1024;

// --- Socket buffers (transport/socket_options.h) ---

// Bytes that one connection may have in flight: more than fits the second-level cache would be
// copied from memory at both ends. And the size for more than a few connections, which may all be
// busy at the same time. "64 KiB over 16 queue pairs".
inline constexpr int kSendBuffer = 768 * 1024, kReceiveBuffer = 512 * 1024;
inline constexpr int kSharedSocketBuffer = 256 * 1024;
inline constexpr unsigned kFewConnections = 3;

// --- Datagrams (datagram/) ---

// Bytes that a port's socket may hold in each direction: datagrams beyond that are lost while
// nobody receives. "UD send bandwidth 4 KiB".
inline constexpr int kDatagramBuffer = 8 * 1024 * 1024;
// How long a post waits for room in a full socket before its datagrams are lost: longer than a
// network of 1 Gb/s takes to send half of what a stock kernel's socket holds.
inline constexpr Nanoseconds kFullSocketWait = 20 * kMillisecond;
// How often a port is read, several datagrams at a time, before the engine serves others.
inline constexpr int kDatagramReceives = 4;

// --- Faults (faults/watch.cc) ---

// Interval of looks at a completion queue for a request that must fail. An adapter takes as long
// for a retry.
inline constexpr Nanoseconds kFailingQueueLook = kMillisecond;

// Interval of looks for requests that have failed while a port is down by a rule. Time-outs are at
// least a second.
inline constexpr Nanoseconds kDownPortLook = 10 * kMillisecond;

// --- The end of a process (core/last_thread.h) ---

// Interval of looks for threads of the program once main()'s has ended. Short enough for a script
// that waits for the process.
inline constexpr Nanoseconds kLastThreadLook = 100 * kMillisecond;

// --- Shaking (shake/temper.h) ---

// How many consecutive completions of a work queue are held by the same mood: enough for a program
// to come to depend on their timing, few enough for a short run to see several moods.
inline constexpr uint64_t kMoodCompletions = 32;
// The longest times for which a completion is held: about the time of the next poll, of an answer
// from the peer, and of a delay on a busy host.
inline constexpr Nanoseconds kShortHold = 20 * kMicrosecond, kHold = 200 * kMicrosecond,
                             kLongestHold = 2 * kMillisecond;
// Completions that are held until there are many are held until the next multiple of this time.
inline constexpr Nanoseconds kGatheringTime = kMillisecond;
// The longest delay of ibv_req_notify_cq(): longer than an answer from the peer takes.
inline constexpr Nanoseconds kLongestArming = 300 * kMicrosecond;
// How many completions that are not owed a poll returns at most when it returns few; and how many
// of one work queue before another one's turn.
inline constexpr uint64_t kFewCompletions = 3, kTurn = 4;
// Loop iterations between placing the end of a Write and the rest (qp/place_shaken.h): 1 to 100 us,
// depending on the processor.
inline constexpr int kShortPlacingPause = 50, kLongPlacingPause = 1000;

// The longest delays of rdma_cm events (cm/lateness.h): longer than a first message takes, and than
// a delay on a busy host.
inline constexpr Nanoseconds kShortLateness = 300 * kMicrosecond,
                             kLongestLateness = 5 * kMillisecond;

// --- Messages (core/explain.h) ---

// For how many objects the same message is logged per process. A server with faulty peers creates a
// queue pair for each of them.
inline constexpr uint32_t kMostExplained = 32;

}  // namespace uiw::core::tuning
