// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Requests that cannot be sent because of an error at this end. Such a request ends the connection.
// If requests complete by acknowledgement, those posted before it complete first: InfiniBand's
// requester reaches the faulty one in order, and programs look at the first completion with an
// error. So the request is kept unstarted, and the peer is asked about those before it.
#include <algorithm>
#include <cinttypes>

#include "core/verbs_names.h"
#include "qp/opcode_rules.h"
#include "qp/tx.h"
#include "queue/memory_trouble.h"

namespace uiw::qp {

// Checks that the used part of every SGE lies in a region of this QP's protection domain, and
// translates the SGEs to send from into addresses of this process. Zero-length SGEs are not checked
// (conformance 3.1), nor the part of an SGE that an atomic's answer does not fill. False: the
// request is refused.
bool Tx::check_local_sges(SendWqe& wr) {
  const bool is_sink = rule_of(wr.opcode).answered;
  uint32_t left = wr.length;
  for (uint32_t i = 0; i < wr.sge_count; ++i) {
    ibv_sge& sge = wr.sges()[i];
    const uint32_t used = std::min(sge.length, left);
    if (used == 0) continue;
    left -= used;
    const uint8_t* const from = regions_.locate(*shared_->memory, sge.lkey, shared_->pd, sge.addr,
                                                used, is_sink ? uint32_t{mem::kLocalWrite} : 0);
    if (!from) {
      refuse_sge(wr, sge, used);
      return false;
    }
    // Sinks are looked up again when bytes arrive (Rx).
    if (!is_sink) sge.addr = reinterpret_cast<uint64_t>(from);
  }
  return true;
}

void Tx::refuse_sge(SendWqe& wr, const ibv_sge& sge, uint64_t used) {
  const core::Cause cause =
      queue::explain_sge(shared_->told, *shared_->memory,
                         {.qp_num = shared_->qp_num,
                          .wr_id = wr.wr_id,
                          .what = core::name_of(wr.opcode),
                          .pd = shared_->pd,
                          .rights = rule_of(wr.opcode).answered ? uint32_t{mem::kLocalWrite} : 0},
                         static_cast<uint32_t>(&sge - wr.sges()), sge, used);
  refuse(wr, IBV_WC_LOC_PROT_ERR, cause);
}

// `wr`: the first that has not started. Errors of SGEs were logged by refuse_sge().
void Tx::refuse(const SendWqe& wr, ibv_wc_status status, core::Cause cause) {
  if (cause != core::Cause::kNone && status != IBV_WC_LOC_PROT_ERR)
    core::explain(shared_->told, "queue pair 0x%06x: wr_id 0x%" PRIx64 " (IBV_WR_%s) failed: %s",
                  shared_->qp_num, wr.wr_id, core::name_of(wr.opcode),
                  core::find_cause(static_cast<uint32_t>(cause))->text);
  found_ = {status, cause};
  raise_found();
}

// False: earlier requests are not complete yet, or nothing is started any more.
bool Tx::raise_found() {
  SendQueue& queue = *shared_->send_queue;
  if (acknowledgements_ != Acknowledgements::kNone) {
    retire();
    if (queue.has_unretired() || queue.started() >= start_limit_) return false;
  }
  raise_local(queue.slot(queue.start()), found_.status, found_.cause);
  return true;
}

void Tx::raise_local(SendWqe& wr, ibv_wc_status status, core::Cause cause) {
  wr.status = status;
  fault_.raised = true;
  fault_.cause = cause;
  // RFC 5040 7.1(1): for an error that no incoming message caused the Terminate has no headers.
  fault_.terminate = {.code = core::TermCode::kLocalCatastrophic};
}

}  // namespace uiw::qp
