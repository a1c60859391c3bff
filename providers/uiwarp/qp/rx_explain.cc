// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Log messages about messages that could not be received and requests that the peer may not make.
// The peer gets only the Terminate.
#include <cinttypes>

#include "core/instrumented.h"
#include "core/log.h"
#include "core/verbs_names.h"
#include "mem/diagnosis.h"
#include "qp/rx.h"
#include "queue/memory_trouble.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::qp {

using core::Cause;

// For an operation of the peer that may not use the memory it names (rights, bounds). For messages
// that unreliable service drops, only the first is diagnosed.
void Rx::explain_access(const char* operation, const mem::Wanted& wanted) {
  static constexpr char kSentence[] =
      "queue pair 0x%06x: refused %s of the peer (rkey 0x%08x, address 0x%" PRIx64 ", %" PRIu64
      " bytes): %s";
  explained_ = true;
  if (const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire))
    if (told->peer_refused(shared_->qp_num, wanted.key, wanted.address, wanted.length)) return;
  if (!shared_->told.first(kSentence)) return;
  const mem::Diagnosis found = mem::diagnose_remote(*shared_->memory, shared_->stream(), wanted);
  core::log(core::LogLevel::kWarn, kSentence, shared_->qp_num, operation, wanted.key,
            wanted.address, wanted.length, mem::describe(found, wanted, "rkey").text);
}

void Rx::explain_short_receive(const Segment& segment, bool last) {
  explained_ = true;
  core::explain(shared_->told,
                "queue pair 0x%06x: wr_id 0x%" PRIx64 ": the receive has %" PRIu64
                " bytes, and the peer's message has %s%" PRIu64 ": post longer receives",
                shared_->qp_num, receive_.wr_id, receive_.length, last ? "" : "at least ",
                uint64_t{send_octets_} + segment.payload_size());
}

Cause Rx::explain_receive(uint64_t octets) {
  explained_ = true;
  return queue::explain_sges(shared_->told, *shared_->memory,
                             {.qp_num = shared_->qp_num,
                              .wr_id = receive_.wr_id,
                              .what = "receive",
                              .pd = shared_->receive_pd,
                              .rights = mem::kLocalWrite},
                             receive_.sges, receive_.sge_count, octets);
}

Cause Rx::explain_answer(const SendWqe& wr, uint64_t octets) {
  explained_ = true;
  return queue::explain_sges(shared_->told, *shared_->memory,
                             {.qp_num = shared_->qp_num,
                              .wr_id = wr.wr_id,
                              .what = core::name_of(wr.opcode),
                              .pd = shared_->pd,
                              .rights = mem::kLocalWrite},
                             wr.sges(), wr.sge_count, octets);
}

void Rx::explain_invalidation(uint32_t stag, bool foreign) {
  explained_ = true;
  core::explain(shared_->told,
                "queue pair 0x%06x: wr_id 0x%" PRIx64
                ": the peer's Send with Invalidate names key 0x%08x: %s",
                shared_->qp_num, receive_.wr_id, stag,
                core::find_cause(static_cast<uint32_t>(foreign ? Cause::kInvalidateForeign
                                                               : Cause::kInvalidateImpossible))
                    ->text);
}

void Rx::explain_too_many_requests() {
  explained_ = true;
  core::explain(shared_->told,
                "queue pair 0x%06x: the peer has more than %u RDMA Reads and atomics outstanding, "
                "which was agreed on (responder_resources, max_dest_rd_atomic)",
                shared_->qp_num, shared_->agreement.ird);
}

void Rx::explain_misaligned(uint64_t to) {
  explained_ = true;
  core::explain(shared_->told,
                "queue pair 0x%06x: refused an atomic of the peer: its target (address 0x%" PRIx64
                ") is no multiple of 8 in memory",
                shared_->qp_num, to);
}

// For faults without a message of their own: the peer broke a rule of the protocol.
void Rx::explain_fault() {
  if (std::exchange(explained_, true)) return;
  const core::TermCode code = fault_.terminate.code;
  core::explain(
      shared_->told,
      "queue pair 0x%06x: ending the connection, because of what the peer sent: Terminate "
      "0x%04x, %s",
      shared_->qp_num, static_cast<unsigned>(code), core::describe(code));
}

}  // namespace uiw::qp
