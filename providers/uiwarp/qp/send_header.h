// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The header of a segment of a Send or an RDMA Write. RFC 5041 4, RFC 5040 4.1 and 4.2.
#pragma once

#include <cstdint>

#include "ddp/header.h"
#include "qp/opcode_rules.h"
#include "qp/send_queue.h"
#include "rdmap/header.h"

namespace uiw::qp {

inline rdmap::Opcode send_opcode(const SendWqe& wr) {
  if (wr.opcode == IBV_WR_SEND_WITH_INV)
    return wr.solicited ? rdmap::Opcode::kSendSeInvalidate : rdmap::Opcode::kSendInvalidate;
  return wr.solicited ? rdmap::Opcode::kSendSe : rdmap::Opcode::kSend;
}

// Encodes the header of the segment that begins `offset` bytes into the message. Returns the
// header's end.
inline uint8_t* encode_send_header(uint8_t* at, const SendWqe& wr, uint32_t offset, bool last) {
  if (rule_of(wr.opcode).remote == Remote::kRdma)
    return ddp::encode(at, ddp::TaggedHeader{last, rdmap::control(rdmap::Opcode::kWrite), wr.rkey,
                                             wr.remote_addr + offset});
  // RFC 5040 4.1: the Invalidate STag is 0 where it has no meaning. All segments of a message carry
  // the same.
  const uint32_t invalidate = rule_of(wr.opcode).invalidates ? wr.rkey : 0;
  return ddp::encode(at, ddp::UntaggedHeader{last, rdmap::control(send_opcode(wr)), invalidate,
                                             ddp::kQnSend, wr.msn, offset});
}

}  // namespace uiw::qp
