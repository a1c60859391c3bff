// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Direct placement: receives the rest of a large segment, and the expected further segments of its
// message, into the memory that their payload belongs to. The bytes between the payloads are
// checked afterwards. If the expectation was wrong, the payload still lies inside the memory of the
// message: the length of a Read is our own, that of another message was given by the peer in a hint
// (peer_hints.h). The payload is then copied from there and placed again.
// doc/decisions/014-several-segments-in-a-call.md
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/assert.h"
#include "core/be.h"
#include "qp/rx.h"
#include "queue/scatter.h"

namespace uiw::qp {

using core::Bytes;
using core::TermCode;
using rdmap::Opcode;

// What the message has after the open segment, and how it is segmented: by uiwarp as its length
// hint says, by others most likely like the segment before.
Rx::Expected Rx::expected() const {
  if (ddp::is_last(open_.header[0])) return {};
  const uint32_t payload = open_segment().payload_size();
  LengthHint message = write_hint_;
  uint64_t begun = write_octets_;
  if (!open_.tagged) {
    message = send_hint_;
    begun = uint64_t{send_octets_} + open_.left;
  } else if (open_.opcode() == Opcode::kReadResponse) {
    message = {shared_->outstanding_requests.front()->length, payload};
    begun = response_octets_ + open_.left;
  } else if (ddp::decode_tagged(open_.header).to != write_from_ + write_octets_ - payload) {
    return {};  // does not continue the message where it ended
  }
  // If the segment differs from the hint, nothing is known.
  if (message.length <= begun || message.segment != payload) return {};
  return {message.length - begun, payload};
}

bool Rx::plan_placement(DirectPlacement& out) {
  if (!may_place_directly() || open_.dropped || ended_ || waiting_ != RxStatus::kOk) return false;
  const Expected expected = this->expected();
  const uint64_t ahead =
      std::min<uint64_t>(expected.octets, expected.segment * DirectPlacement::kAhead);
  if (shared_->place != qp::place) return false;
  const bool write = open_.opcode() == Opcode::kWrite;
  if (!(write ? find_write(out, ahead) : find_sges(out, ahead))) return false;
  uint64_t found = 0;
  for (size_t i = 0; i < out.count; ++i) found += out.pieces[i].iov_len;
  const uint64_t room = found - std::min<uint64_t>(found, open_.left);
  // The order of the kernel's stores is unknown, so we place the end of a Write ourselves.
  const uint32_t held_back = write ? kPlacedLast : 0;
  out.pieces[0].iov_len -= room + held_back;
  out.size = out.open = found - room - held_back;
  add_ahead(out, expected, room, held_back);
  return true;
}

// Reports no faults: on_octets() does when the bytes have come.
bool Rx::find_write(DirectPlacement& out, uint64_t ahead) const {
  const ddp::TaggedHeader header = ddp::decode_tagged(open_.header);
  const uint64_t to = header.to + (open_segment().payload_size() - open_.left);
  mem::RegionRef region = shared_->memory->find(header.stag);
  if (!region) return false;
  const auto allowed = [&](uint64_t octets) {
    return mem::check_remote(*region, shared_->stream(), to, octets, mem::kRemoteWrite) ==
           mem::Fault::kNone;
  };
  uint64_t octets = open_.left + ahead;
  if (!allowed(octets)) octets = open_.left;
  if (!allowed(octets)) return false;
  out.pieces[0] = {region->memory + (to - region->start), octets};
  out.regions[0] = std::move(region);
  out.count = 1;
  return true;
}

bool Rx::find_sges(DirectPlacement& out, uint64_t ahead) const {
  const ibv_sge* sges = receive_.sges;
  uint32_t count = receive_.sge_count, pd = shared_->receive_pd;
  uint64_t offset = send_octets_;
  if (open_.tagged) {
    const OutstandingRequest& read = *shared_->outstanding_requests.front();
    if (asks_nothing(read)) return false;
    const SendWqe& wr = shared_->send_queue->slot(read.slot);
    sges = wr.sges();
    count = wr.sge_count;
    pd = shared_->pd;
    offset = response_octets_;
  }
  out.count = 0;
  const auto take = [&](const ibv_sge& sge, uint64_t at, uint64_t size) {
    if (out.count == DirectPlacement::kMaxSges) return false;
    mem::RegionRef region = shared_->memory->find(sge.lkey);
    if (!region ||
        mem::check(*region, pd, sge.addr + at, size, mem::kLocalWrite) != mem::Fault::kNone)
      return false;
    out.pieces[out.count] = {region->memory + (sge.addr + at - region->start), size};
    out.regions[out.count++] = std::move(region);
    return true;
  };
  queue::for_each_sge(sges, count, offset, open_.left + ahead, take);
  if (out.count == 1) return true;
  // Further segments are received only if the open one lies in a single piece of memory; so cut the
  // list to the open segment.
  size_t left = open_.left;
  for (size_t i = 0; i < out.count; ++i) {
    iovec& piece = out.pieces[i];
    left -= piece.iov_len = std::min(piece.iov_len, left);
    if (left == 0) out.count = i + 1;
  }
  return out.count > 0;
}

// Adds pieces for expected segments. `room`: bytes in the same piece of memory after the open
// segment.
void Rx::add_ahead(DirectPlacement& out, Expected expected, uint64_t room,
                   uint32_t held_back) const {
  auto* at = static_cast<uint8_t*>(out.pieces[0].iov_base) + open_.left;
  const Segment segment = open_segment();
  uint8_t header[ddp::kUntaggedHeaderSize];
  std::memcpy(header, open_.header, sizeof header);
  uint32_t passed = segment.payload_size(), trailer = open_.trailer;
  while (out.next_count < DirectPlacement::kAhead) {
    const auto size = static_cast<uint32_t>(std::min<uint64_t>(expected.octets, expected.segment));
    if (size < core::tuning::kLargePayload || size > room) return;
    room -= size;
    expected.octets -= size;
    ddp::move_on(header, passed, expected.octets == 0);
    DirectPlacement::Next& next = out.next[out.next_count++];
    next.lead = held_back + trailer;
    next.head = mpa::kLengthSize + segment.header_size;
    const uint32_t ulpdu_size = segment.header_size + size;
    core::store_be16(next.expected, static_cast<uint16_t>(ulpdu_size));
    std::memcpy(next.expected + mpa::kLengthSize, header, segment.header_size);
    const uint32_t early =
        DirectPlacement::kHead - next.head;  // payload bytes that are received with the header
    next.payload = at + early;
    next.size = size - early - held_back;
    out.pieces[out.count++] = {next.between, next.between_size()};
    out.pieces[out.count++] = {next.payload, next.size};
    out.size += next.between_size() + next.size;
    at += size;
    passed = size;
    trailer = mpa::pad_size(ulpdu_size) + mpa::kCrcSize;
  }
}

// Of the `octets` received after the open segment, copies to `rest` the first segment that differs
// from the expected one, and everything after it. False: out of memory.
bool Rx::take_unexpected(const DirectPlacement& placement, size_t octets, RxStaging& rest) {
  size_t i = 0;
  for (; i < placement.next_count; ++i) {
    const DirectPlacement::Next& next = placement.next[i];
    // No payload of this segment has come yet.
    if (octets <= next.between_size()) return true;
    if (std::memcmp(next.between + next.lead, next.expected, next.head) != 0) break;
    octets -= std::min<size_t>(octets, next.between_size() + next.size);
  }
  const auto keep = [&](const uint8_t* from, size_t size) {
    size = std::min(size, octets);
    octets -= size;
    return rest.append({from, size});
  };
  for (; i < placement.next_count && octets > 0; ++i) {
    const DirectPlacement::Next& next = placement.next[i];
    if (!keep(next.between, next.between_size()) || !keep(next.payload, next.size)) return false;
  }
  return true;
}

// Processes the `octets` after the open segment whose payload was placed as expected.
RxStatus Rx::take_expected(const DirectPlacement& placement, size_t octets) {
  for (size_t i = 0; octets > 0; ++i) {
    const DirectPlacement::Next& next = placement.next[i];
    const size_t between = std::min<size_t>(octets, next.between_size());
    const size_t payload = std::min<size_t>(octets - between, next.size);
    const RxStatus status = take({next.between, between});
    if (status != RxStatus::kOk) return status;
    advance(payload);
    octets -= between + payload;
  }
  return RxStatus::kOk;
}

RxStatus Rx::placed_directly(DirectPlacement& placement, size_t octets, Bytes behind) {
  sends_first_ = false;
  const size_t placed = std::min(octets, placement.size);
  const size_t open = std::min(placed, placement.open);
  RxStaging rest;
  const bool kept = take_unexpected(placement, placed - open, rest);
  // The received messages may invalidate an STag of these regions.
  for (mem::RegionRef& region : placement.regions) region.reset();
  if (!kept) return raise(TermCode::kDdpLocalCatastrophic, nullptr);
  advance(open);
  RxStatus status = take_expected(placement, placed - open - rest.size());
  regions_.release();
  if (status == RxStatus::kOk) status = on_octets(rest.octets());
  // After a fault nothing more is processed; after a Send that waits for its receive everything is
  // kept.
  if (status == RxStatus::kOk || has_to_wait(status))
    status = on_octets(behind.first(octets - placed));
  return status;
}

// Counts `octets` of the open segment's payload as placed.
void Rx::advance(size_t octets) {
  UIW_ASSERT(octets == 0 || (open_.active && octets <= open_.left));
  open_.left -= static_cast<uint32_t>(octets);
  if (!open_.tagged) {
    send_octets_ += static_cast<uint32_t>(octets);
  } else if (open_.opcode() == Opcode::kReadResponse) {
    response_octets_ += octets;
  }
}

}  // namespace uiw::qp
