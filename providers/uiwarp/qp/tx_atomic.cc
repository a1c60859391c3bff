// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Atomic Requests and Responses: RFC 7306 section 5.2. Each is one FPDU.
#include "mpa/framing.h"
#include "qp/tx.h"

namespace uiw::qp {

void Tx::build_atomic_request(const SendWqe& wr) {
  const bool swaps = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  uint8_t* header = batch_->arena_end() + mpa::kLengthSize;
  // RFC 7306 5.2.1: numbered with the Read Requests.
  header =
      ddp::encode(header, ddp::UntaggedHeader{true, rdmap::control(rdmap::Opcode::kAtomicRequest),
                                              0, ddp::kQnRequest, request_msn_++, 0});
  // Verbs atomics have no fields: one 64-bit addition, or a compare and swap of all bits.
  rdmap::encode(header, rdmap::AtomicRequest{
                            .op = swaps ? rdmap::AtomicOp::kCmpSwap : rdmap::AtomicOp::kFetchAdd,
                            .id = wr.cookie,
                            .stag = wr.rkey,
                            .to = wr.remote_addr,
                            .add_or_swap = wr.operands.add_or_swap,
                            .add_or_swap_mask = swaps ? rdmap::kAllBits : 0,
                            .compare = wr.operands.compare});
  // Not done when sent: RFC 7306 5.4(7).
  build_fpdu(ddp::kUntaggedHeaderSize + rdmap::kAtomicRequestSize, nullptr, nullptr, 0, kNoSlot);
}

void Tx::build_atomic_response(const rdmap::AtomicResponse& response) {
  uint8_t* header = batch_->arena_end() + mpa::kLengthSize;
  header = ddp::encode(header,
                       ddp::UntaggedHeader{true, rdmap::control(rdmap::Opcode::kAtomicResponse), 0,
                                           ddp::kQnAtomicResponse, atomic_response_msn_++, 0});
  rdmap::encode(header, response);
  build_fpdu(ddp::kUntaggedHeaderSize + rdmap::kAtomicResponseSize, nullptr, nullptr, 0, kNoSlot);
}

}  // namespace uiw::qp
