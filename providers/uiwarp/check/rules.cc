// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/rules.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "check/fingerprint.h"
#include "check/text.h"
#include "core/cause.h"
#include "core/crc32c.h"
#include "core/request_sges.h"
#include "core/verbs_names.h"

namespace uiw::check {
namespace {

constexpr uint64_t kAtomicSize = 8;
constexpr unsigned kGrhSize = 40;
constexpr uint8_t kSpoilt = 0xa5;

uint64_t length_of(const ibv_send_wr& wr) {
  return core::bytes_of(core::sges_of(wr, Request::kMostSges));  // with more it is refused for that
}

bool is_atomic(const ibv_send_wr& wr) {
  return wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

}  // namespace

std::optional<Fault> why_send_refused(const ibv_send_wr& wr, int error, ibv_qp_state state,
                                      const ibv_qp_cap& cap, const Requests& outstanding) {
  if (error == ENOMEM) {
    if (outstanding.size() < cap.max_send_wr || outstanding.has_signaled()) return {};
    return Fault{Kind::kSendQueueFull,
                 text("ibv_post_send failed with ENOMEM: the send queue holds %zu requests, which "
                      "is all it was made for (max_send_wr %u), and none of them asks for a "
                      "completion, so that none can ever be polled and it stays full",
                      outstanding.size(), cap.max_send_wr)};
  }
  if (error != EINVAL) return {};
  if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR)
    return Fault{Kind::kWrongState,
                 text("ibv_post_send in state %s failed with EINVAL: requests are sent in RTS only",
                      core::name_of(state))};
  if (is_atomic(wr) && wr.wr.atomic.remote_addr % kAtomicSize != 0)
    return Fault{Kind::kAtomicMisaligned,
                 text("ibv_post_send of an atomic operation failed with EINVAL: its remote address "
                      "0x%" PRIx64 " is no multiple of 8",
                      wr.wr.atomic.remote_addr)};
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > cap.max_send_sge) return {};
  if (is_atomic(wr) && length_of(wr) < kAtomicSize)
    return Fault{Kind::kAtomicMisaligned,
                 text("ibv_post_send of an atomic operation failed with EINVAL: the old value has "
                      "8 bytes, its SGEs have %" PRIu64,
                      length_of(wr))};
  return inline_not_asked(wr, cap.max_inline_data);
}

std::optional<Fault> not_polled(int error, const Requests& outstanding, uint32_t waiting) {
  if (error != ENOMEM || waiting == 0) return {};
  return Fault{Kind::kSendQueueFull,
               text("ibv_post_send failed with ENOMEM: the send queue holds %zu requests, while %u "
                    "completions wait to be polled in its completion queue",
                    outstanding.size(), waiting)};
}

std::optional<Fault> why_receive_refused(int error, ibv_qp_state state, bool has_srq) {
  if (error != EINVAL) return {};
  if (has_srq)
    return Fault{Kind::kWrongState,
                 "ibv_post_recv failed with EINVAL: this queue pair has a shared receive queue, "
                 "which ibv_post_srq_recv posts to"};
  if (state != IBV_QPS_RESET) return {};
  return Fault{Kind::kWrongState,
               "ibv_post_recv in state RESET failed with EINVAL: receives are posted from INIT on"};
}

std::optional<Fault> too_early(ibv_qp_state state) {
  if (state != IBV_QPS_RTR) return {};
  return Fault{
      Kind::kWrongState,
      "ibv_post_send in state RTR: here the request waits until the queue pair is moved to "
      "RTS, and for ever if it never is"};
}

std::optional<Fault> inline_not_asked(const ibv_send_wr& wr, uint32_t asked) {
  const bool is_answered = is_atomic(wr) || wr.opcode == IBV_WR_RDMA_READ;  // has none
  if (!(wr.send_flags & IBV_SEND_INLINE) || is_answered) return {};
  const uint64_t length = length_of(wr);
  if (length <= asked) return {};
  return Fault{Kind::kInline,
               text("%" PRIu64 " bytes are posted with IBV_SEND_INLINE, but the queue "
                    "pair was created with max_inline_data %u",
                    length, asked)};
}

Memory memory_of(const Request& request, const Regions& regions) {
  Memory memory;
  if (request.role != Role::kSource) return memory;
  uint32_t value = core::crc32c_begin();
  bool known = true;
  for (const ibv_sge& sge : request.sges) {
    const Region* const region = sge.length ? regions.find(sge.lkey) : nullptr;
    if (sge.length && (!region || !region->holds(sge))) known = false;
    if (!region || !known) continue;
    const Look look = fingerprint(region->at(sge), sge.length, value);
    known = look == Look::kSeen;
    memory.readable = look != Look::kUnreadable;
  }
  if (known) memory.fingerprint = value;
  return memory;
}

std::string why_datagram_dropped(const Request& receive, uint64_t needed) {
  return text(
      "a datagram came that is longer than its receive, which has %" PRIu64
      " bytes: it needs %" PRIu64
      ", of which the first %u are for the GRH. The datagram is lost, and the receive stays",
      receive.bytes(), needed, kGrhSize);
}

std::optional<Verdict> why_refused(const Request& request, ibv_wc_status status,
                                   const Regions& regions, const void* pd) {
  if (status == IBV_WC_LOC_LEN_ERR && request.role == Role::kSink)
    return Verdict{
        Kind::kReceiveTooShort,
        text("a message came that is longer than its receive, which has %" PRIu64 " bytes",
             request.bytes()),
        {}};
  if (status != IBV_WC_LOC_PROT_ERR) return {};
  for (const ibv_sge& sge : request.sges) {
    if (sge.length == 0) continue;
    Verdict verdict = regions.judge(sge, pd, request.role == Role::kSink);
    if (!verdict.what.empty()) return verdict;
  }
  return {};
}

std::optional<Verdict> why_unanswered(const Request& request, const ibv_wc& wc) {
  const auto cause = static_cast<uint32_t>(core::Cause::kNoReadsGranted);
  if (request.role != Role::kSink || wc.status != IBV_WC_LOC_QP_OP_ERR || wc.vendor_err != cause)
    return {};
  return Verdict{Kind::kReadDepth,
                 "an RDMA Read or atomic failed, since the connection was agreed on with none: "
                 "initiator_depth of this end (max_rd_atomic) or responder_resources of the peer "
                 "(max_dest_rd_atomic) was 0",
                 {}};
}

std::optional<Verdict> why_peer_refused(const Request& request, const ibv_wc& wc, bool certain) {
  const auto base = static_cast<uint32_t>(core::Cause::kPeerTerminated);
  if (wc.status != IBV_WC_REM_ACCESS_ERR || (wc.vendor_err & ~0xffffu) != base) return {};
  const auto code = static_cast<core::TermCode>(wc.vendor_err & 0xffff);
  std::string of;
  if (certain)
    of = text(" of %" PRIu64 " bytes, rkey 0x%x, remote address 0x%" PRIx64, request.bytes(),
              request.rkey, request.remote_address);
  return Verdict{
      Kind::kRemoteAccess,
      text("the peer refused the request%s, and ended the connection: Terminate 0x%04x, "
           "%s (%s)",
           of.c_str(), static_cast<unsigned>(code), core::describe(code), core::advice(code)),
      {}};
}

std::string why_write_refused(const DoneWrite& write, size_t matches, uint64_t address,
                              core::TermCode code) {
  std::string which = text("a Write of %" PRIu64 " bytes, rkey 0x%x, remote address 0x%" PRIx64,
                           write.bytes, write.rkey, write.remote_address);
  if (matches > 1)
    which = text("one of the last %zu Writes to rkey 0x%x, address 0x%" PRIx64, matches, write.rkey,
                 address);
  return text(
      "the peer refused %s, which had completed with success, since TCP had taken it, and ended "
      "the connection: Terminate 0x%04x, %s (%s)",
      which.c_str(), static_cast<unsigned>(code), core::describe(code), core::advice(code));
}

std::string list_of(const std::vector<uint64_t>& wr_ids) {
  constexpr size_t kShown = 8;
  std::string list = "wr_id";
  for (size_t i = 0; i < std::min(wr_ids.size(), kShown); ++i)
    list += text("%s 0x%" PRIx64, i ? "," : "", wr_ids[i]);
  if (wr_ids.size() > kShown) list += text(" and %zu more", wr_ids.size() - kShown);
  return list;
}

void spoil(ibv_wc& wc) {
  const ibv_wc real = wc;
  std::memset(&wc, kSpoilt, sizeof wc);
  wc.wr_id = real.wr_id;
  wc.status = real.status;
  wc.vendor_err = real.vendor_err;
  wc.qp_num = real.qp_num;
}

}  // namespace uiw::check
