// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/kinds.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace uiw::check {
namespace {

constexpr KindInfo kInfos[] = {
    {Kind::kBufferInFlight, "buffer-in-flight", "memory of a request that has not ended",
     "The adapter may access the memory at any time until the request completes: the peer receives "
     "a mixture of old and new bytes, or the request ends with a protection error.",
     "Do not change the memory or its registration until the request's completion has been polled. "
     "A time-out in the program does not end a request; only its completion or the error state of "
     "its queue pair does."},
    {Kind::kDestroyedInUse, "destroyed-in-use", "a queue destroyed with requests unaccounted for",
     "The completions of these requests are lost: the program never learns which of them were "
     "carried out, and never frees what it keeps for each wr_id.",
     "Move the queue pair to the error state, poll until every request has completed (at the "
     "latest with IBV_WC_WR_FLUSH_ERR), then destroy it."},
    {Kind::kSendQueueFull, "send-queue-full", "a send queue that can never be emptied",
     "The entry of a request becomes free when its completion, or a later one, is polled. If no "
     "request has a completion, the queue stays full and each further post fails with ENOMEM.",
     "Set IBV_SEND_SIGNALED in at least one of every max_send_wr requests, and poll that "
     "completion before the queue is full."},
    {Kind::kCqTooSmall, "cq-too-small", "a completion queue smaller than what it has to take",
     "When the queue overflows, completions are lost, IBV_EVENT_CQ_ERR is raised, and every queue "
     "pair that uses the queue goes to the error state.",
     "Create the completion queue with room for the receives and the signaled sends of all its "
     "queue pairs, or keep fewer of these outstanding."},
    {Kind::kKeySwapped, "key-swapped", "one of a region's two keys used as the other",
     "On many adapters both keys have the same value, so the program works until it runs on one "
     "where they differ. There the request ends with IBV_WC_LOC_PROT_ERR or IBV_WC_REM_ACCESS_ERR.",
     "SGEs take the lkey of memory at this end; wr.rdma.rkey and wr.atomic.rkey take the rkey that "
     "the peer sent. Send the peer mr->rkey, not mr->lkey."},
    {Kind::kLocalProtection, "local-protection", "an SGE of memory that its request may not use",
     "The request ends with IBV_WC_LOC_PROT_ERR, and the queue pair goes to the error state.",
     "Compare the SGE with the region that the finding names: its bounds, its protection domain, "
     "its access flags, and whether it is still registered."},
    {Kind::kInline, "inline-not-asked", "more inline bytes than were asked for",
     "An adapter that grants exactly what was asked for refuses the post with EINVAL or ENOMEM. "
     "Others grant more, so that the program seems to work.",
     "Ask for enough in cap.max_inline_data when the queue pair is created, check the value that "
     "ibv_create_qp() writes there, and post longer messages without IBV_SEND_INLINE."},
    {Kind::kReceiveTooShort, "receive-too-short", "a message longer than its receive",
     "The receive ends with IBV_WC_LOC_LEN_ERR, the send with IBV_WC_REM_INV_REQ_ERR, and both "
     "queue pairs go to the error state. The sender of a datagram gets no error, and some adapters "
     "drop the datagram without a completion.",
     "Post receives that are as long as the longest message that the peer may send (on UD queue "
     "pairs 40 bytes longer, for the GRH), and limit what the peer sends."},
    {Kind::kAtomicMisaligned, "atomic-misaligned", "an atomic operation not on 8 aligned bytes",
     "The request ends with IBV_WC_REM_INV_REQ_ERR or IBV_WC_LOC_LEN_ERR, and the queue pair goes "
     "to the error state.",
     "Use a remote address that is a multiple of 8, and SGEs with room for the 8 bytes of the old "
     "value."},
    {Kind::kDestroyOrder, "destroy-order", "an object destroyed before what uses it",
     "The call fails with EBUSY, as in uiwarp. A program that ignores the result leaks the object.",
     "Destroy in the reverse order of creation: queue pairs, shared receive queues and completion "
     "queues, memory windows and regions, protection domains, completion channels, the device."},
    {Kind::kLeak, "leak", "an object that was never destroyed",
     "The object holds memory of the adapter, and pinned memory of the host, until the process "
     "ends.",
     "Destroy the object before the device is closed."},
    {Kind::kWrongState, "wrong-state", "a call that the state of the queue pair forbids",
     "The call fails with EINVAL. On adapters that do not check the state, the request is never "
     "carried out.",
     "Post receives from INIT on and sends in RTS; with rdma_cm after RDMA_CM_EVENT_ESTABLISHED."},
    {Kind::kLostEvent, "event-lost", "a thread that waits for an event which does not come",
     "ibv_req_notify_cq() asks for an event for completions that arrive after the call. Some "
     "adapters, like uiwarp, also raise one at once for completions that arrived before and had no "
     "event; others do not. There, the event for a completion that arrives between the last poll "
     "and ibv_req_notify_cq() is lost.",
     "After each event call ibv_req_notify_cq(), then ibv_poll_cq() until it returns 0, and only "
     "then wait again; call ibv_req_notify_cq() also before the first request is posted."},
    {Kind::kNotAcknowledged, "event-not-acknowledged",
     "an object destroyed before its events were "
     "acknowledged",
     "The call waits, as in uiwarp, until the events are acknowledged; if nothing acknowledges "
     "them, it waits for ever.",
     "Before the object is destroyed, acknowledge every event: those from ibv_get_cq_event() by "
     "ibv_ack_cq_events(), singly or several at once, those from ibv_get_async_event() by "
     "ibv_ack_async_event(), and those from rdma_get_cm_event() by rdma_ack_cm_event()."},
    {Kind::kSection, "wr-section", "a section of ibv_wr_start() that is not kept",
     "The section holds a lock on the queue pair, unless it belongs to a thread domain. Posts by "
     "other threads then wait for ever, or, without the lock, are mixed up with the requests of "
     "the section.",
     "After each ibv_wr_start(), call ibv_wr_complete() or ibv_wr_abort() once in the same thread, "
     "on every path. Call the ibv_wr_*() functions that add requests only in between."},
    {Kind::kConcurrentUse, "concurrent-use", "two threads in a queue for one at a time",
     "No lock is taken: completions are returned twice or lost, and requests overwrite each other.",
     "Hold a lock around the calls, give each thread a queue of its own, or create the queue "
     "without a thread domain and without IBV_CREATE_CQ_ATTR_SINGLE_THREADED."},
    {Kind::kInherited, "used-in-child", "an object of the parent used in a forked child",
     "The child shares the parent's device but has copies of its queues, or no mapping of them. "
     "What the child posts is lost or corrupts the parent's queues, and what it destroys is "
     "destroyed for the parent, too.",
     "Open the device after fork() or daemon(), in each process that uses it. A child must not "
     "touch the objects of its parent, and ends with _exit() or calls exec()."},
    {Kind::kAttributesMissing, "attributes-missing",
     "a move of a queue pair without its attributes", "ibv_modify_qp() fails with EINVAL.",
     "Set every attribute that the manual page of ibv_modify_qp lists for this transition of an RC "
     "queue pair, and its bit in attr_mask."},
    {Kind::kReadDepth, "read-depth", "an RDMA Read or atomic where none may be outstanding",
     "The request ends with IBV_WC_LOC_QP_OP_ERR or IBV_WC_REM_INV_REQ_ERR, or is never carried "
     "out; some adapters carry it out.",
     "Set max_rd_atomic above 0 at the end that posts Reads and atomics, and max_dest_rd_atomic at "
     "the peer to at least the same value. With rdma_cm these are initiator_depth and "
     "responder_resources."},
    {Kind::kNoReceive, "no-receive", "a message that found no receive",
     "The sender's adapter retries after min_rnr_timer, at most rnr_retry times; meanwhile the "
     "queue pair sends nothing else. Then the request ends with IBV_WC_RNR_RETRY_EXC_ERR. iWARP "
     "adapters end the connection at once.",
     "Post receives before the peer may send, and post new ones as soon as they complete. Let the "
     "peer send no more messages than it knows there are receives for."},
    {Kind::kRemoteAccess, "remote-access", "a request for memory that the peer does not allow",
     "The request ends with IBV_WC_REM_ACCESS_ERR, and both queue pairs go to the error state.",
     "Compare the rkey, the remote address and the length with what the peer registered and with "
     "its access flags; the peer's own messages name the region."},
    {Kind::kUsedAfterDestroy, "used-after-destroy", "a call on an object that is destroyed",
     "The memory of the object has been freed: the call crashes, or works on whatever occupies "
     "that memory now.",
     "When an object is destroyed, clear every pointer to it. Before a queue is destroyed, stop "
     "the threads that poll it or post to it."},
    {Kind::kEventUnread, "event-unread", "an asynchronous event that nobody read",
     "The event is reported once. A program that does not read it takes a queue that is in error, "
     "or has no receives left, for an idle one, or goes on using addresses and ports that no "
     "longer exist.",
     "Have a thread call ibv_get_async_event() and ibv_ack_async_event() for as long as the device "
     "is open, and close or repair the object that the event names."},
    {Kind::kUnmapped, "memory-unmapped", "registered memory that is unmapped",
     "The pages stay pinned, and the adapter continues to use them: what it receives goes to "
     "memory that the program cannot see, and what it sends are the old bytes, even if other "
     "memory has that address now.",
     "First poll the completions of all requests that use the memory (in the error state of the "
     "queue pair, outstanding requests end, too), then deregister it, then unmap it."},
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
