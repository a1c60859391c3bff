// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Building FPDUs: RFC 5044 section 4, RFC 5041 section 4 and 5.2, RFC 5040 section 4.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/assert.h"
#include "core/crc32c.h"
#include "mpa/markers.h"
#include "qp/opcode_rules.h"
#include "qp/peer_hints.h"
#include "qp/send_header.h"
#include "qp/tx.h"
#include "rdmap/immediate.h"

namespace uiw::qp {

namespace {

// Bytes of the length field, the DDP header and other headers: those of a Terminate are the
// longest.
constexpr uint32_t kMaxHeader = 128;

}  // namespace

// RFC 6581 section 5: a frame that belongs to no WR and no receive, and makes no completion.
void Tx::build_rtr() {
  rtr_ = RtrState::kNone;
  rtr_in_batch_ = true;
  if (shared_->agreement.rtr == mpa::Rtr::kRead) {
    shared_->outstanding_requests.push({.cookie = kRtrStag});
    build_read_request({kRtrStag, 0, 0, kRtrStag, 0});
    return;
  }
  build_empty_write(kRtrStag, 0);
}

bool Tx::build_capability_hint() {
  capability_hint_sent_ = true;
  if (!ensure_batch()) return false;
  build_empty_write(kRtrStag, kCapabilityHint);
  return true;
}

// RFC 5041 5.2: STag and TO are not checked if nothing is placed.
void Tx::build_empty_write(uint32_t stag, uint64_t to) {
  uint8_t* header = batch_->arena_end() + mpa::kLengthSize;
  ddp::encode(header, ddp::TaggedHeader{true, rdmap::control(rdmap::Opcode::kWrite), stag, to});
  build_fpdu(ddp::kTaggedHeaderSize, nullptr, nullptr, 0, kNoSlot);
}

void Tx::build_read_request(const rdmap::ReadRequest& request) {
  uint8_t* header = batch_->arena_end() + mpa::kLengthSize;
  header =
      ddp::encode(header, ddp::UntaggedHeader{true, rdmap::control(rdmap::Opcode::kReadRequest), 0,
                                              ddp::kQnRequest, request_msn_++, 0});
  rdmap::encode(header, request);
  // Not done when sent: a Read completes with its response (RFC 5040 5.5(19)).
  build_fpdu(ddp::kUntaggedHeaderSize + rdmap::kReadRequestSize, nullptr, nullptr, 0, kNoSlot);
}

// Builds one segment of message_, or a hint before it. False: fault_ was raised, or the batch has
// no room.
bool Tx::build_segment() {
  if (message_.kind == Message::kReadResponse) return build_response_segment();
  if (!ensure_batch()) return false;  // a long message continues in a new batch
  SendWqe& wr = shared_->send_queue->slot(message_.slot);
  if (message_.kind == Message::kImmediate) {
    build_immediate(wr);
    message_ = {};
    return true;
  }
  const bool tagged = message_.kind == Message::kWrite;
  const uint32_t header_size = tagged ? ddp::kTaggedHeaderSize : ddp::kUntaggedHeaderSize;
  if (to_stagger(wr, header_size)) {
    build_empty_write(kRtrStag, 0);
    return true;
  }
  uint8_t* header = batch_->arena_end() + mpa::kLengthSize;
  const uint32_t most = message_.segment > 0 ? message_.segment : mulpdu_ - header_size;
  if (std::exchange(message_.length_hint, false)) {
    // Each segment will be as long as the hint says, even if the MULPDU changes.
    message_.segment = most;
    build_empty_write(most, length_hint_offset({wr.length, most}));
    return true;
  }
  if (std::exchange(message_.immediate_hint, false)) {
    build_empty_write(kRtrStag, immediate_hint_offset(wr.immediate));
    return true;
  }
  const uint64_t left = message_.length - message_.offset;
  const uint32_t size = static_cast<uint32_t>(std::min<uint64_t>(left, most));
  const bool last = size == left;
  encode_send_header(header, wr, static_cast<uint32_t>(message_.offset), last);
  const bool immediate_follows = tagged && rule_of(wr.opcode).immediate;
  const uint64_t completed = last && !immediate_follows ? message_.slot : kNoSlot;
  if (wr.is_inline) {
    build_fpdu(header_size, nullptr, wr.inline_data + message_.offset, size, completed);
  } else {
    build_fpdu(header_size, &wr, nullptr, size, completed);
  }
  message_.offset += size;
  if (last && immediate_follows) {
    message_ = {.kind = Message::kImmediate,
                .slot = message_.slot};  // nothing may come between the two
  } else if (last) {
    message_ = {};
  }
  return true;
}

// RFC 7306 6.3: 8 bytes on the queue of the Sends.
void Tx::build_immediate(const SendWqe& wr) {
  const rdmap::Opcode opcode =
      wr.solicited ? rdmap::Opcode::kImmediateSe : rdmap::Opcode::kImmediate;
  uint8_t* header = batch_->arena_end() + mpa::kLengthSize;
  header = ddp::encode(
      header, ddp::UntaggedHeader{true, rdmap::control(opcode), 0, ddp::kQnSend, wr.msn, 0});
  rdmap::encode_immediate(header, wr.immediate);
  build_fpdu(ddp::kUntaggedHeaderSize + rdmap::kImmediateSize, nullptr, nullptr, 0, message_.slot);
}

bool Tx::build_response_segment() {
  const InboundRequest& inbound = *shared_->inbound_requests.front();
  const rdmap::ReadRequest& request = inbound.read;
  const uint64_t left = message_.length - message_.offset;
  const uint32_t size =
      static_cast<uint32_t>(std::min<uint64_t>(left, mulpdu_ - ddp::kTaggedHeaderSize));
  const bool last = size == left;
  const uint8_t* payload = nullptr;
  // RFC 5040 5.2.1: the source of a zero-length Read is not checked.
  if (request.size > 0) {
    mem::RegionRef region = shared_->memory->find(request.source_stag, mem::Side::kSend);
    if (!region ||
        mem::check_remote(*region, shared_->stream(), request.source_to + message_.offset, size,
                          mem::kRemoteRead) != mem::Fault::kNone) {
      // The region was deregistered after the request was accepted. RFC 5040 4.8: the echoed header
      // is advanced by what was already sent.
      rdmap::ReadRequest rest = request;
      rest.sink_to += message_.offset;
      rest.source_to += message_.offset;
      rest.size -= static_cast<uint32_t>(message_.offset);
      fault_.raised = true;
      fault_.local_access = true;
      rdmap::Terminate& t = fault_.terminate;
      t = {.code = core::TermCode::kRemoteInvalidStag,
           .has_length = true,
           .has_ddp_header = true,
           .has_read_header = true};
      t.ddp_segment_length = ddp::kUntaggedHeaderSize + rdmap::kReadRequestSize;
      t.ddp_header_size = ddp::kUntaggedHeaderSize;
      std::memcpy(t.ddp_header, inbound.ddp_header, ddp::kUntaggedHeaderSize);
      rdmap::encode(t.read_header, rest);
      return false;
    }
    if (!ensure_batch()) return false;
    payload = region->memory + (request.source_to + message_.offset - region->start);
    // When the peer invalidates a window, the engine waits for references through it, so none is
    // kept longer than a copy takes.
    const bool copied = to_copy(size) || region->is_window();
    if (copied) {
      if (!has_room(size)) return false;
    } else if (!batch_->holds(*region) && !batch_->hold(std::move(region))) {
      return false;  // sent in place, so the region must stay until then; its pieces share a
                     // reference
    }
    // If the payload is copied, `region` still holds the reference while build_fpdu() does that.
    ddp::encode(batch_->arena_end() + mpa::kLengthSize,
                ddp::TaggedHeader{last, rdmap::control(rdmap::Opcode::kReadResponse),
                                  request.sink_stag, request.sink_to + message_.offset});
    build_fpdu(ddp::kTaggedHeaderSize, nullptr, payload, size, kNoSlot, copied);
  } else {
    if (!ensure_batch()) return false;
    ddp::encode(batch_->arena_end() + mpa::kLengthSize,
                ddp::TaggedHeader{true, rdmap::control(rdmap::Opcode::kReadResponse),
                                  request.sink_stag, request.sink_to});
    build_fpdu(ddp::kTaggedHeaderSize, nullptr, nullptr, 0, kNoSlot);
  }
  message_.offset += size;
  if (last) {
    message_ = {};
    end_response();
  }
  return true;
}

// Calls add(bytes, size) for each piece of an FPDU's payload: `payload`, or the SGEs of `gather`
// from the message's position on, which it advances.
template <class Add>
void Tx::for_each_piece(const SendWqe* gather, const uint8_t* payload, uint32_t payload_size,
                        Add&& add) {
  if (!gather) {
    if (payload_size > 0) add(payload, payload_size);
    return;
  }
  for (uint32_t left = payload_size; left > 0;) {
    const ibv_sge& sge = gather->sges()[message_.sge];
    const uint32_t size = std::min(left, sge.length - message_.sge_offset);
    if (size > 0) add(reinterpret_cast<const uint8_t*>(sge.addr) + message_.sge_offset, size);
    left -= size;
    message_.sge_offset += size;
    if (message_.sge_offset == sge.length) {
      ++message_.sge;
      message_.sge_offset = 0;
    }
  }
}

// The header, after room for the length field, is at arena_end() already. The payload comes from
// `payload`, or from the SGEs of `gather` at the message's position. `copied`: copy the payload
// even if it could be sent in place.
void Tx::build_fpdu(uint32_t header_size, const SendWqe* gather, const uint8_t* payload,
                    uint32_t payload_size, uint64_t completed_slot, bool copied) {
  uint8_t* const start = batch_->arena_end();
  core::store_be16(start, static_cast<uint16_t>(header_size + payload_size));
  if (markers_)
    return build_marked_fpdu(header_size, gather, payload, payload_size, completed_slot);
  uint32_t in_arena = mpa::kLengthSize + header_size;
  uint32_t crc = core::crc32c_begin();
  if (copied || to_copy(payload_size)) {
    if (crc_) crc = core::crc32c_update(crc, start, in_arena);
    for_each_piece(gather, payload, payload_size, [&](const uint8_t* from, uint32_t size) {
      copy(start + in_arena, from, size, crc);
      in_arena += size;
    });
    batch_->add_from_arena(in_arena);
  } else {
    batch_->add_from_arena(in_arena);
    for_each_piece(gather, payload, payload_size,
                   [&](const uint8_t* from, uint32_t size) { batch_->add_in_place(from, size); });
  }
  batch_->add_from_arena(
      mpa::write_trailer(batch_->arena_end(), header_size + payload_size, crc_, crc));
  batch_->end_fpdu(completed_slot);
}

// The same with markers (RFC 5044 4.3). All payload is copied, also without CRC: peers that want
// markers are adapters on an Ethernet, and an iovec piece between any two markers would cost more
// than the copy.
void Tx::build_marked_fpdu(uint32_t header_size, const SendWqe* gather, const uint8_t* payload,
                           uint32_t payload_size, uint64_t completed_slot) {
  // The header lies where the FPDU will be written.
  uint8_t header[kMaxHeader];
  UIW_ASSERT(header_size <= sizeof header - mpa::kLengthSize);
  std::memcpy(header, batch_->arena_end(), mpa::kLengthSize + header_size);
  const uint32_t ulpdu_size = header_size + payload_size;
  const auto position = static_cast<uint32_t>(position_ + batch_->total()) % mpa::kMarkerInterval;
  mpa::MarkerWriter writer(batch_->arena_end(), position);
  writer.put(header, mpa::kLengthSize + header_size);
  for_each_piece(gather, payload, payload_size,
                 [&](const uint8_t* from, uint32_t size) { writer.put(from, size); });
  constexpr uint8_t kZeros[4] = {};
  writer.put(kZeros, mpa::pad_size(ulpdu_size));
  writer.before_crc();
  const uint32_t crc = crc_ ? core::crc32c(writer.written().data(), writer.written().size()) : 0;
  writer.put(&crc, sizeof crc);  // little-endian host: be.h
  batch_->add_from_arena(static_cast<uint32_t>(writer.written().size()));
  batch_->end_fpdu(completed_slot);
}

// RFC 5040 5.4: QN 2, MSN 1, MO 0, one segment.
void Tx::append_terminate(const rdmap::Terminate& terminate) {
  if (!ensure_batch()) return;
  uint8_t* header = batch_->arena_end() + mpa::kLengthSize;
  uint8_t* body =
      ddp::encode(header, ddp::UntaggedHeader{true, rdmap::control(rdmap::Opcode::kTerminate), 0,
                                              ddp::kQnTerminate, 1, 0});
  const uint32_t size = rdmap::encode(body, terminate);
  build_fpdu(ddp::kUntaggedHeaderSize + size, nullptr, nullptr, 0, kNoSlot);
}

// Unpredictable, never 0, and no STag of ours: the sink STag that the peer sees must not give
// access to memory (conformance SE-28).
uint32_t Tx::next_cookie() {
  uint32_t cookie;
  do {
    cookie = static_cast<uint32_t>(core::siphash(secret_, ++cookies_));
  } while (cookie == 0 || shared_->memory->find(cookie, mem::Side::kSend));
  return cookie;
}

}  // namespace uiw::qp
