// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Small Sends and Writes: one FPDU each, all of it copied to the arena. Programs post many in a
// row, and most of what each one costs is finding out that it needs nothing else. So what is the
// same for all of them is asked once, by who picks the first one (tx.cc), and for each only what
// its own request says.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/be.h"
#include "core/crc32c.h"
#include "mpa/framing.h"
#include "qp/send_header.h"
#include "qp/tx.h"

namespace uiw::qp {

bool Tx::is_small(const SendRequest& wr) const {
  const OpcodeRule& rule = rule_of(wr.opcode);
  return wr.length <= small_ && rule.may_inline && !rule.immediate && !markers_;
}

// The first of them may be sent now; those behind it as long as nothing else comes in between.
// False: fault_ is raised.
bool Tx::build_small_messages() {
  if (!ensure_batch()) return false;
  SendQueue& queue = *shared_->send_queue;
  // Answers that are due take turns with single messages.
  const bool one = shared_->inbound_requests.size() > 0;
  const uint64_t end = one ? queue.started() + 1 : std::min(queue.posted(), start_limit_);
  bool first = true;
  do {
    const uint64_t slot = queue.start();
    SendRequest& wr = queue.slot(slot);
    const uint32_t size = write_small(wr);
    if (size == 0) {
      raise_local(wr, IBV_WC_LOC_PROT_ERR);
      return false;
    }
    if (std::exchange(first, false)) {
      batch_->add_from_arena(size);
      batch_->end_fpdu(slot);
    } else {
      batch_->add_fpdu_from_arena(size, slot);
    }
    if (queue.started() == end || !has_room()) return true;
  } while (is_small(queue.first_unstarted()) && !queue.first_unstarted().fence);
  return true;
}

// Writes the FPDU to the end of the arena. Returns its size; 0: an SGE is not memory of this
// protection domain.
inline uint32_t Tx::write_small(SendRequest& wr) {
  uint8_t* const start = batch_->arena_end();
  uint8_t* const ulpdu = start + mpa::kLengthSize;
  if (rule_of(wr.opcode).queue == ddp::kQnSend) wr.msn = send_msn_++;
  uint8_t* at = encode_send_header(ulpdu, wr, 0, true);
  if (wr.is_inline) {
    std::memcpy(at, wr.inline_data, wr.length);
    at += wr.length;
  }
  const ibv_sge* const sges = wr.sges();
  for (uint32_t i = 0; i < wr.sge_count; ++i) {
    const ibv_sge& sge = sges[i];
    if (sge.length == 0) continue;  // conformance 3.1: not looked at
    const mem::Region* region = regions_.find_local(*shared_->memory, sge.lkey);
    if (!region || mem::check(*region, shared_->pd, sge.addr, sge.length, 0) != mem::Fault::kNone)
      return 0;
    std::memcpy(at, region->memory + (sge.addr - region->start), sge.length);
    at += sge.length;
  }
  const auto ulpdu_size = static_cast<uint32_t>(at - ulpdu);
  core::store_be16(start, static_cast<uint16_t>(ulpdu_size));
  // RFC 5044 4.1, 4.4, as in finish_fpdu().
  uint32_t crc = 0;
  std::memset(at, 0, 3);
  at += mpa::pad_size(ulpdu_size);
  if (crc_) crc = core::crc32c(start, static_cast<size_t>(at - start));
  std::memcpy(at, &crc, sizeof crc);  // little-endian host: be.h
  return static_cast<uint32_t>(at + mpa::kCrcSize - start);
}

}  // namespace uiw::qp
