// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/cause.h"

#include <algorithm>

namespace uiw::core {
namespace {

constexpr uint32_t kCodeMask = 0xffff;

constexpr CauseInfo kCauses[] = {
    {Cause::kNone, "none", "The request succeeded, or its queue pair was never used."},
    {Cause::kKeyUnknown, "key unknown",
     "No memory region of this device has this lkey: use mr->lkey of the region that contains the "
     "SGE, not an rkey, an address or a key of another process."},
    {Cause::kKeyDeregistered, "key deregistered",
     "The memory region was deregistered before the request was carried out: call ibv_dereg_mr "
     "only after the completions of all requests that use the region have been polled."},
    {Cause::kKeyOfOtherDomain, "key of another protection domain",
     "The region and the queue pair (or shared receive queue) belong to different protection "
     "domains: register the memory with the same ibv_pd."},
    {Cause::kKeyOfWindow, "key of a memory window",
     "A memory window has no lkey: use that of the region to which the window is bound."},
    {Cause::kRightMissing, "access right missing",
     "The region was registered without IBV_ACCESS_LOCAL_WRITE. Memory for receives and for the "
     "results of Reads and atomics needs this right."},
    {Cause::kOutOfBounds, "out of bounds",
     "The SGE begins before its region or ends after it: compare its address and length with those "
     "that were registered."},
    {Cause::kAddressWraps, "address wraps",
     "The address and length of the SGE exceed the end of the address space."},
    {Cause::kNotMapped, "memory not mapped",
     "Memory was unmapped or freed while its region was still registered."},
    {Cause::kKeyChanged, "region changed meanwhile",
     "The region was registered again, bound, or given other access rights while the request was "
     "carried out."},
    {Cause::kReceiveTooShort, "receive too short",
     "The message was longer than all SGEs of the receive together (a datagram also needs 40 bytes "
     "for the GRH): post longer receives, or send less."},
    {Cause::kDatagramTooLong, "datagram too long",
     "A datagram cannot be longer than the MTU of the port (ibv_query_port: active_mtu)."},
    {Cause::kNoReadsGranted, "no RDMA Reads granted",
     "The peer does not accept Reads and atomics on this connection: set initiator_depth and "
     "responder_resources of rdma_connect and rdma_accept, or max_rd_atomic and max_dest_rd_atomic "
     "of ibv_modify_qp, above 0."},
    {Cause::kNoImmediates, "no Send with immediate",
     "The peer has the iWARP face, or is not uiwarp, and iWARP has no Send with immediate data: "
     "use RDMA Write with immediate, or UIWARP_FACE=roce at both ends."},
    {Cause::kBindInvalid, "binding invalid",
     "The region to which the memory window was to be bound is invalid, the range exceeds that "
     "region, or the access flags are not allowed for a window."},
    {Cause::kBindOfOtherDomain, "binding across protection domains",
     "The memory window, the region and the queue pair must belong to the same protection domain."},
    {Cause::kBindNotAllowed, "binding not allowed",
     "The region was registered without IBV_ACCESS_MW_BIND, or, for remote writes and atomics, "
     "without IBV_ACCESS_LOCAL_WRITE."},
    {Cause::kBindBound, "window bound already",
     "A memory window of type 2 stays bound until it is invalidated: post IBV_WR_LOCAL_INV first."},
    {Cause::kInvalidateForeign, "invalidation of another's key",
     "The key to be invalidated belongs to another protection domain or queue pair."},
    {Cause::kInvalidateImpossible, "invalidation not possible",
     "Only a bound memory window of type 2 can be invalidated, and only once."},
    {Cause::kNoMemory, "no memory", "The process has no memory left."},
    {Cause::kPeerNotFound, "peer not found",
     "Connected by number: the peer was never found. The message at the default log level says "
     "where uiwarp looked for it; doc/troubleshooting.md lists the causes. uiwarp makes the "
     "connection in the background from RTR on: a peer that is destroyed before the connection is "
     "up gives this value, later 0x33."},
    {Cause::kPeerSilent, "peer silent",
     "The peer's host did not answer within the timeout and retry_cnt of the queue pair, or within "
     "UIWARP_PEER_TIMEOUT_MS. The host is down, or something on the way drops packets."},
    {Cause::kPeerUnreachable, "peer unreachable",
     "The network reports that the peer's host cannot be reached any more."},
    {Cause::kPeerGone, "peer gone",
     "Connected by number: while the connection was up, the peer's process ended or its queue pair "
     "was destroyed or moved to ERR or RESET, and then this end had something to send. Within "
     "milliseconds after RTS the connection may not be up yet; the value is then 0x30."},
    {Cause::kConnectionBroken, "connection broken",
     "The TCP connection was reset: by the peer's host, if a process ended with unread data, or by "
     "something on the way."},
    {Cause::kMessageCutOff, "message cut off",
     "The connection ended while a message was arriving: what was received or written is "
     "incomplete."},
    {Cause::kPeerDisconnected, "peer disconnected",
     "The peer disconnected or its process ended (these look the same) while the request was "
     "outstanding. Receives usually are."},
    {Cause::kDisconnected, "disconnected",
     "This end disconnected (rdma_disconnect, ibv_modify_qp to SQD) while the request was "
     "outstanding or before it was posted."},
    {Cause::kModifiedToError, "modified to ERR", "The program moved the queue pair to ERR itself."},
    {Cause::kQueueOverflow, "completion queue overflow",
     "A completion queue of the queue pair was full and lost a completion (IBV_EVENT_CQ_ERR): give "
     "it as many entries as completions may be unpolled on all its queue pairs at one time."},
    {Cause::kCloseTimedOut, "close timed out",
     "After a disconnect the peer neither received the remaining data nor closed its side within "
     "UIWARP_CLOSE_TIMEOUT_MS."},
    {Cause::kNotConnected, "not connected",
     "The connection for which the queue pair was chosen was not established."},
    {Cause::kInjected, "by a rule of --faults",
     "A rule of `uiwarp run --faults` caused this: the message at the default log level names the "
     "line of the rule."},
    {Cause::kPeerTerminated, "ended by the peer",
     "The peer ended the connection by a Terminate message. The lower 16 bits are the layer, error "
     "type and code of that message (RFC 5040, 5041, 5044)."},
    {Cause::kTerminatedHere, "ended here",
     "The peer violated the protocol or named memory that it may not use, so this end ended the "
     "connection by a Terminate message. The lower 16 bits are the layer, error type and code of "
     "that message."},
};

}  // namespace

std::span<const CauseInfo> cause_table() {
  return kCauses;
}

const CauseInfo* find_cause(uint32_t vendor_err) {
  const uint32_t terminates = vendor_err & ~kCodeMask;
  const auto wanted = static_cast<Cause>(terminates ? terminates : vendor_err);
  const auto* const row = std::ranges::find(kCauses, wanted, &CauseInfo::cause);
  return row == std::end(kCauses) ? nullptr : row;
}

}  // namespace uiw::core
