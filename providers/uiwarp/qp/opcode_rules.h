// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What each verbs opcode means in RDMAP: the one table that posting, sending and finding the
// request to blame use (conformance 3.1).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/service.h"
#include "core/verbs_names.h"
#include "ddp/header.h"

namespace uiw::qp {

// Which member of ibv_send_wr::wr names memory of the peer.
enum class Remote : uint8_t { kNone, kRdma, kAtomic };

inline constexpr uint32_t kNoQueue = ~0u;

struct OpcodeRule {
  bool supported = false;
  ibv_wc_opcode completes_as = IBV_WC_SEND;
  Remote remote = Remote::kNone;
  uint32_t queue = kNoQueue;  // the DDP queue on which it uses one MSN
  bool may_inline = false;    // its payload comes from the application's SGEs
  bool answered = false;      // counts against ORD; its SGEs receive the answer, which completes it
  bool immediate = false;     // carries imm_data
  bool invalidates = false;   // invalidate_rkey is an STag, the peer's or a local one
  bool local = false;         // nothing is sent; SGEs are ignored
  bool unreliable = false;    // also with unreliable service: the peer need not answer
};

// Indexed by ibv_wr_opcode. SEND_WITH_IMM depends on the queue pair: its send queue refuses it if
// needed.
inline constexpr OpcodeRule kOpcodeRules[] = {
    /* RDMA_WRITE */
    {.supported = true,
     .completes_as = IBV_WC_RDMA_WRITE,
     .remote = Remote::kRdma,
     .may_inline = true,
     .unreliable = true},
    /* RDMA_WRITE_WITH_IMM: an RDMA Write, then Immediate Data (RFC 7306 section 6) */
    {.supported = true,
     .completes_as = IBV_WC_RDMA_WRITE,
     .remote = Remote::kRdma,
     .queue = ddp::kQnSend,
     .may_inline = true,
     .immediate = true,
     .unreliable = true},
    /* SEND */
    {.supported = true,
     .completes_as = IBV_WC_SEND,
     .queue = ddp::kQnSend,
     .may_inline = true,
     .unreliable = true},
    /* SEND_WITH_IMM: no RDMAP message carries both, and two would take two receives (conformance
       3.2). Between two uiwarps of the RoCE face: a Send behind an immediate hint */
    {.supported = true,
     .completes_as = IBV_WC_SEND,
     .queue = ddp::kQnSend,
     .may_inline = true,
     .immediate = true,
     .unreliable = true},
    /* RDMA_READ */
    {.supported = true,
     .completes_as = IBV_WC_RDMA_READ,
     .remote = Remote::kRdma,
     .queue = ddp::kQnRequest,
     .answered = true},
    /* ATOMIC_CMP_AND_SWP */
    {.supported = true,
     .completes_as = IBV_WC_COMP_SWAP,
     .remote = Remote::kAtomic,
     .queue = ddp::kQnRequest,
     .answered = true},
    /* ATOMIC_FETCH_AND_ADD */
    {.supported = true,
     .completes_as = IBV_WC_FETCH_ADD,
     .remote = Remote::kAtomic,
     .queue = ddp::kQnRequest,
     .answered = true},
    /* LOCAL_INV */
    {.supported = true,
     .completes_as = IBV_WC_LOCAL_INV,
     .invalidates = true,
     .local = true,
     .unreliable = true},
    /* BIND_MW */
    {.supported = true, .completes_as = IBV_WC_BIND_MW, .local = true, .unreliable = true},
    /* SEND_WITH_INV */
    {.supported = true,
     .completes_as = IBV_WC_SEND,
     .queue = ddp::kQnSend,
     .may_inline = true,
     .invalidates = true},
};
static_assert(IBV_WR_RDMA_WRITE == 0 && IBV_WR_RDMA_WRITE_WITH_IMM == 1 && IBV_WR_SEND == 2 &&
              IBV_WR_SEND_WITH_IMM == 3 && IBV_WR_RDMA_READ == 4 &&
              IBV_WR_ATOMIC_CMP_AND_SWP == 5 && IBV_WR_ATOMIC_FETCH_AND_ADD == 6 &&
              IBV_WR_LOCAL_INV == 7 && IBV_WR_BIND_MW == 8 && IBV_WR_SEND_WITH_INV == 9);

inline constexpr const OpcodeRule& rule_of(ibv_wr_opcode opcode) {
  return kOpcodeRules[opcode];
}

// The opcodes that may be posted to a queue pair: a bit for each ibv_wr_opcode.
inline constexpr uint32_t opcodes_of(core::Service service, bool send_with_immediate) {
  uint32_t opcodes = 0;
  for (uint32_t i = 0; i < sizeof kOpcodeRules / sizeof *kOpcodeRules; ++i) {
    const OpcodeRule& rule = kOpcodeRules[i];
    const bool here = service == core::Service::kReliable || rule.unreliable;
    if (rule.supported && here && (i != IBV_WR_SEND_WITH_IMM || send_with_immediate))
      opcodes |= 1u << i;
  }
  return opcodes;
}

// The rule of an opcode that an application wrote, which may be no valid value.
inline const OpcodeRule& rule_of_any(const ibv_wr_opcode& opcode) {
  static constexpr OpcodeRule kNone;
  const uint32_t value = core::value_of(opcode);
  return value < sizeof kOpcodeRules / sizeof *kOpcodeRules ? kOpcodeRules[value] : kNone;
}

}  // namespace uiw::qp
