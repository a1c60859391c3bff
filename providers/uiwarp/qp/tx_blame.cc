// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Finds the outstanding request that a Terminate of the peer is about, and logs it. A Terminate
// carries only the headers of the refused segment.
#include <cinttypes>
#include <cstdio>

#include "core/instrumented.h"
#include "core/settings.h"
#include "core/verbs_names.h"
#include "qp/opcode_rules.h"
#include "qp/tx.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::qp {
namespace {

// Whether the segment whose header the Terminate echoes may have come from this WR.
bool caused_by(const rdmap::Terminate& t, const SendWqe& wr) {
  const OpcodeRule& rule = rule_of(wr.opcode);
  if (ddp::is_tagged(t.ddp_header[0])) {
    const ddp::TaggedHeader h = ddp::decode_tagged(t.ddp_header);
    const bool is_write = rule.remote == Remote::kRdma && !rule.answered;
    return is_write && h.stag == wr.rkey && h.to >= wr.remote_addr &&
           h.to - wr.remote_addr < wr.length;
  }
  const ddp::UntaggedHeader h = ddp::decode_untagged(t.ddp_header);
  if (h.qn != rule.queue) return false;
  // The echoed request carries our cookie; the MSN that siw echoes is wrong (conformance 5.1).
  if (wr.opcode == IBV_WR_RDMA_READ && t.has_read_header)
    return rdmap::decode_read_request(t.read_header).sink_stag == wr.cookie;
  return h.msn == wr.msn;
}

// The status of the WR that a Terminate with this code is about (conformance 3.4).
ibv_wc_status blamed_as(core::TermCode code, const OpcodeRule& rule) {
  const bool protection = core::layer_of(code) < 2 && core::etype_of(code) == 1;
  if (protection && code != core::TermCode::kRemoteCannotInvalidate) return IBV_WC_REM_ACCESS_ERR;
  if (rule.queue != ddp::kQnSend) return IBV_WC_REM_INV_REQ_ERR;
  if (code == core::TermCode::kUntaggedNoBuffer) return IBV_WC_RNR_RETRY_EXC_ERR;
  // The Send found a receive with bad memory.
  if (code == core::TermCode::kStreamCatastrophic) return IBV_WC_REM_OP_ERR;
  return IBV_WC_REM_INV_REQ_ERR;
}

struct Text {
  char text[96] = "";
};

Text named_by(const rdmap::Terminate& t) {
  Text out;
  if (!t.has_ddp_header) return out;
  if (ddp::is_tagged(t.ddp_header[0])) {
    const ddp::TaggedHeader h = ddp::decode_tagged(t.ddp_header);
    std::snprintf(out.text, sizeof out.text, " (segment for rkey 0x%08x, address 0x%" PRIx64 ")",
                  h.stag, h.to);
  } else if (t.has_read_header) {
    const rdmap::ReadRequest read = rdmap::decode_read_request(t.read_header);
    std::snprintf(out.text, sizeof out.text,
                  " (Read of %u bytes, rkey 0x%08x, address 0x%" PRIx64 ")", read.size,
                  read.source_stag, read.source_to);
  } else {
    const ddp::UntaggedHeader h = ddp::decode_untagged(t.ddp_header);
    std::snprintf(out.text, sizeof out.text, " (message %u of DDP queue %u)", h.msn, h.qn);
  }
  return out;
}

Text target_of(const SendWqe& wr) {
  Text out;
  if (rule_of(wr.opcode).remote != Remote::kNone)
    std::snprintf(out.text, sizeof out.text, ", rkey 0x%08x, remote address 0x%" PRIx64, wr.rkey,
                  wr.remote_addr);
  return out;
}

// A Write that the peer refused has completed already if it completes when TCP takes it. True: an
// instrument has reported which Write it was.
bool is_said(uint32_t qp_num, const rdmap::Terminate& t) {
  const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire);
  if (!told || !t.has_ddp_header || !ddp::is_tagged(t.ddp_header[0])) return false;
  if (blamed_as(t.code, rule_of(IBV_WR_RDMA_WRITE)) != IBV_WC_REM_ACCESS_ERR) return false;
  const ddp::TaggedHeader h = ddp::decode_tagged(t.ddp_header);
  return told->write_refused(qp_num, h.stag, h.to, static_cast<int>(t.code)) != 0;
}

}  // namespace

// Blames the first WR that matches and has not arrived. After the peer's last arrival hint that is
// the one it refused (build_last_arrival_hint()). Without a hint several may match: the first is
// taken, so that a request that was not placed never completes with success.
bool Tx::blame(const rdmap::Terminate& t) {
  SendQueue& queue = *shared_->send_queue;
  for (uint64_t i = queue.retired(); t.has_ddp_header && i != queue.started(); ++i) {
    SendWqe& wr = queue.slot(i);
    if (is_done(i, wr) || !caused_by(t, wr)) continue;
    wr.status = blamed_as(t.code, rule_of(wr.opcode));
    // All WRs before it were received without a fault.
    if (acknowledgements_ != Acknowledgements::kNone)
      shared_->arrived.store(i, std::memory_order_relaxed);
    // --check has a finding for its completion.
    if (wr.status == IBV_WC_REM_ACCESS_ERR && core::settings().checked()) return true;
    core::explain(shared_->told,
                  "queue pair 0x%06x: the peer refused wr_id 0x%" PRIx64
                  " (IBV_WR_%s, %u bytes%s) and ended the connection: Terminate 0x%04x, %s: %s",
                  shared_->qp_num, wr.wr_id, core::name_of(wr.opcode), wr.length,
                  target_of(wr).text, static_cast<unsigned>(t.code), core::describe(t.code),
                  core::advice(t.code));
    return true;
  }
  if (is_said(shared_->qp_num, t)) return false;
  core::explain(shared_->told,
                "queue pair 0x%06x: the peer ended the connection: Terminate 0x%04x, %s%s: %s%s",
                shared_->qp_num, static_cast<unsigned>(t.code), core::describe(t.code),
                named_by(t).text, core::advice(t.code),
                t.has_ddp_header && acknowledgements_ == Acknowledgements::kNone
                    ? ". The request had already completed with success, since TCP had taken it. "
                      "With UIWARP_COMPLETIONS=acknowledged it would have failed"
                    : "");
  return false;
}

}  // namespace uiw::qp
