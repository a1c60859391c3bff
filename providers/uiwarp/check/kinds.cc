// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/kinds.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace uiw::check {
namespace {

constexpr KindInfo kInfos[] = {
    {Kind::kBufferInFlight, "buffer-in-flight", "memory of a request that has not ended",
     "An adapter reads and writes the memory whenever it gets to it: the peer receives a mixture "
     "of old and new bytes, or the request ends with a protection error.",
     "Leave the memory, and its registration, as it is until the request's completion was polled; "
     "a time-out of the program's own does not end a request, only the error state of its queue "
     "pair and the completion do."},
    {Kind::kDestroyedInUse, "destroyed-in-use", "a queue destroyed with requests unaccounted for",
     "Their completions are lost, so the program never learns which of them were carried out, and "
     "what it keeps for each wr_id is never freed.",
     "Move the queue pair to the error state, poll until every request has completed (with "
     "IBV_WC_WR_FLUSH_ERR at the latest), and destroy it then."},
    {Kind::kSendQueueFull, "send-queue-full", "a send queue that can never be emptied",
     "The entry of a request is free again when a completion behind it was polled. Without any the "
     "queue stays full, and each further post fails with ENOMEM.",
     "Set IBV_SEND_SIGNALED at least once in each max_send_wr requests, and poll that completion "
     "before the queue is full."},
    {Kind::kCqTooSmall, "cq-too-small", "a completion queue smaller than what it has to take",
     "When it overflows its completions are lost, IBV_EVENT_CQ_ERR comes, and every queue pair of "
     "it goes to the error state.",
     "Create it with room for the receives and the signaled sends of all its queue pairs, or keep "
     "fewer of them outstanding."},
    {Kind::kKeySwapped, "key-swapped", "one of a region's two keys used as the other",
     "Many adapters give both the same number, so it works there until a different one is used; "
     "the others end the request with IBV_WC_LOC_PROT_ERR or IBV_WC_REM_ACCESS_ERR.",
     "SGEs take the lkey of memory of this end; wr.rdma.rkey and wr.atomic.rkey take the rkey that "
     "the peer sent. Send the peer mr->rkey, not mr->lkey."},
    {Kind::kLocalProtection, "local-protection", "an SGE of memory that its request may not use",
     "The request ends with IBV_WC_LOC_PROT_ERR, and the queue pair is in the error state.",
     "Compare the SGE with the region that is named above: its bounds, its protection domain, its "
     "access flags, and whether it is still registered."},
    {Kind::kInline, "inline-not-asked", "more inline bytes than were asked for",
     "An adapter that granted exactly what was asked refuses the post with EINVAL or ENOMEM; "
     "others "
     "granted more, so it seems to work.",
     "Ask for as much in cap.max_inline_data when the queue pair is created, look at what "
     "ibv_create_qp() writes there, and post longer messages without IBV_SEND_INLINE."},
    {Kind::kReceiveTooShort, "receive-too-short", "a message longer than its receive",
     "The receive ends with IBV_WC_LOC_LEN_ERR, the send with IBV_WC_REM_INV_REQ_ERR, and both "
     "queue pairs are in the error state. The sender of a datagram hears nothing, and some "
     "adapters drop it without a completion.",
     "Post receives as long as the longest message that the peer may send, of UD queue pairs 40 "
     "bytes longer for the GRH, and bound what it sends."},
    {Kind::kAtomicMisaligned, "atomic-misaligned", "an atomic operation not on 8 aligned bytes",
     "The request ends with IBV_WC_REM_INV_REQ_ERR or IBV_WC_LOC_LEN_ERR, and the queue pair is in "
     "the error state.",
     "The remote address is a multiple of 8, and the SGEs have room for the 8 bytes of the old "
     "value."},
    {Kind::kDestroyOrder, "destroy-order", "an object destroyed before what uses it",
     "The call fails with EBUSY there as well; a program that does not look at its result leaks "
     "the object.",
     "Destroy in the reverse order of creation: queue pairs, shared receive queues and completion "
     "queues, memory windows and regions, protection domains, completion channels, the device."},
    {Kind::kLeak, "leak", "an object that was never destroyed",
     "It holds memory of the adapter, and pinned memory of the host, until the process ends.",
     "Destroy it before the device is closed."},
    {Kind::kWrongState, "wrong-state", "a call that the state of the queue pair forbids",
     "The call fails with EINVAL, or, on adapters that do not look, the request is never carried "
     "out.",
     "Post receives from INIT on and sends in RTS; with rdma_cm after RDMA_CM_EVENT_ESTABLISHED."},
    {Kind::kLostEvent, "event-lost", "a thread that waits for an event which does not come",
     "An event tells of completions that come after ibv_req_notify_cq(); it need not of those that "
     "waited already. Some adapters raise one at once for what was not told of yet, as uiwarp "
     "does, others none: there each completion that comes between the last poll and "
     "ibv_req_notify_cq() is lost so.",
     "After each event call ibv_req_notify_cq(), then ibv_poll_cq() until it returns 0, and only "
     "then wait again; call ibv_req_notify_cq() also before the first request is posted."},
    {Kind::kNotAcknowledged, "event-not-acknowledged",
     "an object destroyed before its events were "
     "acknowledged",
     "The call waits there as well, for ever where nobody acknowledges them.",
     "Call ibv_ack_cq_events() once for each event that ibv_get_cq_event() gave, or for several at "
     "once, ibv_ack_async_event() for each of ibv_get_async_event(), and rdma_ack_cm_event() for "
     "each of rdma_get_cm_event(), before the object is destroyed."},
    {Kind::kSection, "wr-section", "a section of ibv_wr_start() that is not kept",
     "The section locks the queue pair, but not in thread domains: what others post meanwhile "
     "waits for ever, or is mixed up with what is in the section.",
     "Each ibv_wr_start() is followed by one ibv_wr_complete() or ibv_wr_abort() of the same "
     "thread, on every way out; ibv_wr_*() of requests are called between them only."},
    {Kind::kConcurrentUse, "concurrent-use", "two threads in a queue for one at a time",
     "No lock is taken there: completions are given twice or lost, and requests overwrite each "
     "other.",
     "Lock around the calls, give each thread a queue of its own, or create it without a thread "
     "domain and IBV_CREATE_CQ_ATTR_SINGLE_THREADED."},
    {Kind::kInherited, "used-in-child", "an object of the parent used in a forked child",
     "The child shares the parent's device but has copies of its queues, or no mapping of them: "
     "what it posts is lost or spoils the parent's, and what it destroys is gone for the parent.",
     "Open the device after fork() or daemon(), in each process that uses it. A child leaves what "
     "its parent has made alone, and ends with _exit() or calls exec()."},
    {Kind::kAttributesMissing, "attributes-missing",
     "a move of a queue pair without its attributes", "ibv_modify_qp() fails with EINVAL there.",
     "Set every attribute that the manual page of ibv_modify_qp lists for this move of an RC queue "
     "pair, and its bit in attr_mask."},
    {Kind::kReadDepth, "read-depth", "an RDMA Read or atomic where none may be outstanding",
     "The request ends with IBV_WC_LOC_QP_OP_ERR or IBV_WC_REM_INV_REQ_ERR, or is never carried "
     "out; some adapters carry it out.",
     "Give max_rd_atomic above 0 where Reads and atomics are posted, and max_dest_rd_atomic of at "
     "least as many at the peer; with rdma_cm these are initiator_depth and responder_resources."},
    {Kind::kNoReceive, "no-receive", "a message that found no receive",
     "The sender's adapter tries again after min_rnr_timer, as often as rnr_retry says, during "
     "which the queue pair stands still; then it ends with IBV_WC_RNR_RETRY_EXC_ERR. iWARP "
     "adapters end the connection at once.",
     "Post receives before the peer may send, and new ones as soon as they complete; let the peer "
     "send no more than it knows there are."},
    {Kind::kRemoteAccess, "remote-access", "a request for memory that the peer does not allow",
     "The request ends with IBV_WC_REM_ACCESS_ERR, and both queue pairs are in the error state.",
     "Compare rkey, remote address and length with what the peer registered, and with which access "
     "flags; the peer's own messages name the region."},
    {Kind::kUsedAfterDestroy, "used-after-destroy", "a call on an object that is destroyed",
     "Its memory is freed: the call crashes, or works on what has that memory by then.",
     "Forget a pointer when what it points to is destroyed, in each structure that holds it. Let "
     "the threads that poll and post end, or know that they are not to, before a queue is "
     "destroyed."},
    {Kind::kEventUnread, "event-unread", "an asynchronous event that nobody read",
     "The event is told once. Who does not read it takes a queue that is dead, or has no receives "
     "left, for an idle one, and goes on with addresses and ports that are not there any more.",
     "Let a thread call ibv_get_async_event() and ibv_ack_async_event() for as long as the device "
     "is open, and have it end or repair what the event names."},
    {Kind::kUnmapped, "memory-unmapped", "registered memory that is unmapped",
     "The pages stay pinned, and the adapter goes on with them: what it receives goes where nobody "
     "sees it, what it sends are the old bytes, though other memory may have that address by then.",
     "Poll the completions of all requests that name the memory first (in the error state of the "
     "queue pair the others end, too), then deregister it, and unmap it after that."},
};

constexpr bool is_in_order() {
  for (size_t i = 0; i < std::size(kInfos); ++i)
    if (static_cast<size_t>(kInfos[i].kind) != i) return false;
  return static_cast<size_t>(Kind::kUnmapped) + 1 == std::size(kInfos);
}
static_assert(is_in_order());

}  // namespace

std::span<const KindInfo> kinds() {
  return kInfos;
}

const KindInfo& info(Kind kind) {
  return kInfos[static_cast<size_t>(kind)];
}

}  // namespace uiw::check
