// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/post_refusal.h"

#include <cinttypes>

#include "core/settings.h"
#include "core/verbs_names.h"
#include "queue/receive_queue.h"

namespace uiw::queue {

int LastRefusal::note(PostRule rule, const ibv_send_wr& wr, uint64_t asked, uint64_t allowed) {
  refused_ = {.rule = rule, .wr_id = wr.wr_id, .asked = asked, .allowed = allowed};
  return refused_.error();
}

namespace {

// Whether --check reports each request that is refused by this rule.
bool is_found(const PostRefusal& refused) {
  if (!core::settings().checked()) return false;
  switch (refused.rule) {
    case PostRule::kInline:
    case PostRule::kAtomicSize:
    case PostRule::kAtomicAddress:
      return true;
    case PostRule::kFull:
      return refused.asked == refused.allowed;
    default:
      return false;
  }
}

}  // namespace

void explain(core::Told& told, uint32_t qp_num, const PostRefusal& refused) {
  if (is_found(refused)) return;
  const uint64_t wr_id = refused.wr_id, asked = refused.asked, allowed = refused.allowed;
  switch (refused.rule) {
    case PostRule::kNone:
    case PostRule::kStillFull:
      return;
    case PostRule::kOpcode:
      if (asked < core::opcode_names().size())
        return core::explain(
            told,
            "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
            ": a queue pair of this type and face has no IBV_WR_%s (doc/support.md; "
            "UIWARP_FACE=roce has Send with immediate)",
            qp_num, wr_id, core::opcode_names()[asked]);
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64 ": opcode %" PRIu64
                           " is not one of enum ibv_wr_opcode that there is here: is the work "
                           "request initialised?",
                           qp_num, wr_id, asked);
    case PostRule::kSges:
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                           ": num_sge is %" PRId32 ", max_send_sge of the queue pair is %" PRIu64,
                           qp_num, wr_id, static_cast<int32_t>(asked), allowed);
    case PostRule::kMessage:
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                           ": a message of %" PRIu64 " bytes, %" PRIu64
                           " are the most (ibv_query_port: max_msg_sz)",
                           qp_num, wr_id, asked, allowed);
    case PostRule::kNoInline:
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                           ": IBV_SEND_INLINE with IBV_WR_%s, which sends no bytes of the program",
                           qp_num, wr_id,
                           asked < core::opcode_names().size() ? core::opcode_names()[asked] : "?");
    case PostRule::kInline:
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64 ": %" PRIu64
                           " bytes inline, max_inline_data of the queue pair is %" PRIu64
                           ": ask for more in ibv_create_qp, or leave out IBV_SEND_INLINE",
                           qp_num, wr_id, asked, allowed);
    case PostRule::kAtomicSize:
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                           ": the SGEs of an atomic have %" PRIu64
                           " bytes, its answer has %" PRIu64,
                           qp_num, wr_id, asked, allowed);
    case PostRule::kAtomicAddress:
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                           ": the remote address of an atomic, 0x%" PRIx64
                           ", is no multiple of %" PRIu64,
                           qp_num, wr_id, asked, allowed);
    case PostRule::kBinding:
      return core::explain(told,
                           "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
                           ": IBV_WR_BIND_MW without a window or a region",
                           qp_num, wr_id);
    case PostRule::kNoAddress:
      return core::explain(
          told,
          "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
          ": a UD queue pair needs an address handle of its own protection domain: "
          "wr.ud.ah %s",
          qp_num, wr_id, asked == 0 ? "is null" : "is of another one");
    case PostRule::kFull:
      if (asked < allowed)
        return core::explain(
            told,
            "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
            ": the send queue is full: all %" PRIu64 " places (max_send_wr) are taken, %" PRIu64
            " of them by requests that are not signalled, %" PRIu64
            " by ones that are done; a place is free when its completion, or a later one's, was "
            "polled (ibv_poll_cq)",
            qp_num, wr_id, allowed, asked, refused.waiting);
      return core::explain(
          told,
          "ibv_post_send: queue pair 0x%06x: wr_id 0x%" PRIx64
          ": the send queue is full for good: all %" PRIu64
          " places (max_send_wr) are taken by requests of which none is signalled, so that no "
          "completion will ever free one: post one of so many with IBV_SEND_SIGNALED, and poll it",
          qp_num, wr_id, allowed);
  }
}

int refuse_post_recv(core::Told& told, uint32_t qp_num, const void* srq) {
  if (core::settings().checked()) return EINVAL;  // the finding of --check says the same
  if (srq)
    return core::refuse(
        told, EINVAL,
        "ibv_post_recv: queue pair 0x%06x receives from a shared receive queue: use "
        "ibv_post_srq_recv",
        qp_num);
  return core::refuse(
      told, EINVAL,
      "ibv_post_recv: queue pair 0x%06x is in RESET: move it to INIT first (ibv_modify_qp)",
      qp_num);
}

void explain(core::Told& told, uint32_t qp_num, const ReceiveQueue& queue, const ibv_recv_wr& wr,
             int error) {
  if (error == ENOMEM)
    core::explain(told,
                  "ibv_post_recv: queue pair 0x%06x: wr_id 0x%" PRIx64
                  ": the receive queue is full: max_recv_wr is %u; a place is free when its "
                  "completion was polled",
                  qp_num, wr.wr_id, queue.depth());
  else
    core::explain(told,
                  "ibv_post_recv: queue pair 0x%06x: wr_id 0x%" PRIx64
                  ": num_sge is %d, max_recv_sge of the queue pair is %u",
                  qp_num, wr.wr_id, wr.num_sge, queue.max_sge());
}

void explain(core::Told& told, const ReceiveQueue& queue, const ibv_recv_wr& wr, int error) {
  if (error == ENOMEM)
    core::explain(told,
                  "ibv_post_srq_recv: wr_id 0x%" PRIx64
                  ": the shared receive queue is full: max_wr is %u; a place is free when its "
                  "completion was polled",
                  wr.wr_id, queue.depth());
  else
    core::explain(told,
                  "ibv_post_srq_recv: wr_id 0x%" PRIx64
                  ": num_sge is %d, max_sge of the shared receive queue is %u",
                  wr.wr_id, wr.num_sge, queue.max_sge());
}

}  // namespace uiw::queue
