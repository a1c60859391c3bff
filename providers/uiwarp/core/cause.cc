// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/cause.h"

#include <algorithm>

namespace uiw::core {
namespace {

constexpr uint32_t kCodeMask = 0xffff;

constexpr CauseInfo kCauses[] = {
    {Cause::kNone, "none", "The request completed, or its queue pair was never used."},
    {Cause::kKeyUnknown, "key unknown",
     "The lkey is that of no memory region of this device: use mr->lkey of the region in which the "
     "SGE lies, not an rkey, an address or a key of another process."},
    {Cause::kKeyDeregistered, "key deregistered",
     "The memory region was deregistered before the request was carried out: call ibv_dereg_mr "
     "when "
     "the completions of all requests that name it have been polled."},
    {Cause::kKeyOfOtherDomain, "key of another protection domain",
     "Region and queue pair (for a shared receive queue: region and that queue) belong to "
     "different "
     "protection domains: register the memory with the same ibv_pd."},
    {Cause::kKeyOfWindow, "key of a memory window",
     "A memory window has no lkey: name the region that it is bound to."},
    {Cause::kRightMissing, "access right missing",
     "The region was registered without IBV_ACCESS_LOCAL_WRITE, which memory needs that receives, "
     "or that a Read or atomic writes its result to."},
    {Cause::kOutOfBounds, "out of bounds",
     "The SGE begins before its region or ends behind it: compare address and length with those "
     "that were registered."},
    {Cause::kAddressWraps, "address wraps",
     "Address and length of the SGE go beyond the end of the address space."},
    {Cause::kNotMapped, "memory not mapped",
     "Memory of a region that is still registered was unmapped or freed."},
    {Cause::kKeyChanged, "region changed meanwhile",
     "The region was registered, bound or given other rights while the request was carried out."},
    {Cause::kReceiveTooShort, "receive too short",
     "The message was longer than the receive that it found, of which the SGEs count together, and "
     "with datagrams 40 bytes for the GRH besides: post longer receives, or send less."},
    {Cause::kDatagramTooLong, "datagram too long",
     "A datagram has no more bytes than the MTU of its port (ibv_query_port: active_mtu)."},
    {Cause::kNoReadsGranted, "no RDMA Reads granted",
     "The peer answers no Reads and atomics: give rdma_connect and rdma_accept, or ibv_modify_qp, "
     "initiator_depth and responder_resources (max_rd_atomic, max_dest_rd_atomic) above 0."},
    {Cause::kNoImmediates, "no Send with immediate",
     "The peer has the iWARP face, or is no uiwarp, and iWARP has no Send with immediate data: use "
     "RDMA Write with immediate, or UIWARP_FACE=roce at both ends."},
    {Cause::kBindInvalid, "binding invalid",
     "The region of a memory window's binding is not valid, or the range lies outside of it, or "
     "the "
     "access flags are not those of a window."},
    {Cause::kBindOfOtherDomain, "binding across protection domains",
     "Memory window, region and queue pair have to be of one protection domain."},
    {Cause::kBindNotAllowed, "binding not allowed",
     "The region was registered without IBV_ACCESS_MW_BIND, or, for remote writes and atomics, "
     "without IBV_ACCESS_LOCAL_WRITE."},
    {Cause::kBindBound, "window bound already",
     "A memory window of type 2 is bound until it is invalidated: post IBV_WR_LOCAL_INV first."},
    {Cause::kInvalidateForeign, "invalidation of what is another's",
     "The key to be invalidated belongs to another protection domain or queue pair."},
    {Cause::kInvalidateImpossible, "invalidation not possible",
     "Only a memory window of type 2 that is bound can be invalidated, and once."},
    {Cause::kNoMemory, "no memory", "The process has no memory left."},
    {Cause::kPeerNotFound, "peer not found",
     "Connected by number: the peer never came. The message at the default log level says where it "
     "was looked for; doc/troubleshooting.md has the causes. A peer that is destroyed before the "
     "connection stands, which is made in the background from RTR on, has not come either; after "
     "that it is 0x33."},
    {Cause::kPeerSilent, "peer silent",
     "The peer's host did not answer in time: timeout and retry_cnt of the queue pair, or "
     "UIWARP_PEER_TIMEOUT_MS. It is down, or something on the way drops its packets."},
    {Cause::kPeerUnreachable, "peer unreachable",
     "The network says that there is no way to the peer's host any more."},
    {Cause::kPeerGone, "peer gone",
     "Connected by number: the peer's process ended, or its queue pair was destroyed or moved to "
     "ERR or RESET, while the "
     "connection stood, and then something was to be sent to it. Within milliseconds after RTS "
     "there need not be a connection yet: then it is 0x30."},
    {Cause::kConnectionBroken, "connection broken",
     "The TCP connection was reset: by the peer's host, where a process that ends has left data "
     "unread, or by something on the "
     "way."},
    {Cause::kMessageCutOff, "message cut off",
     "The connection ended while a message was coming in: what was received, or written, is not "
     "all."},
    {Cause::kPeerDisconnected, "peer disconnected",
     "The peer disconnected, or its process ended, which looks the same, and the request was still "
     "outstanding: receives "
     "usually are."},
    {Cause::kDisconnected, "disconnected",
     "This end disconnected (rdma_disconnect, ibv_modify_qp to SQD), and the request was still "
     "outstanding, or posted later."},
    {Cause::kModifiedToError, "modified to ERR", "The program moved the queue pair to ERR itself."},
    {Cause::kQueueOverflow, "completion queue overflow",
     "A completion queue of the queue pair had no room and lost a completion (IBV_EVENT_CQ_ERR): "
     "give it as many entries as may complete at once on all its queue pairs."},
    {Cause::kCloseTimedOut, "close timed out",
     "After a disconnect the peer neither took what was to go out nor closed its side "
     "(UIWARP_CLOSE_TIMEOUT_MS)."},
    {Cause::kNotConnected, "not connected",
     "The connection that the queue pair was chosen for did not come about."},
    {Cause::kInjected, "by a rule of --faults",
     "A rule of `uiwarp run --faults` did this: the message at the default log level names its "
     "line."},
    {Cause::kPeerTerminated, "ended by the peer",
     "The peer ended the connection by a Terminate message, whose layer, error type and code (RFC "
     "5040, 5041, 5044) are the lower 16 bits."},
    {Cause::kTerminatedHere, "ended here",
     "What the peer sent broke a rule or named memory that it may not use, and this end told it by "
     "a Terminate message, whose layer, error type and code are the lower 16 bits."},
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
