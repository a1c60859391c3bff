// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Receiving straight to where payload belongs: the rest of a large segment, and further ones of its
// message as they are expected. What comes between their payloads is looked at afterwards. Whatever
// was expected wrongly lies inside the message all the same: of a Read we asked for it, of others
// the peer has announced it (announcement.h); it is taken from there and placed again.
// doc/decisions/014-several-segments-in-a-call.md
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/assert.h"
#include "core/be.h"
#include "qp/rx.h"
#include "qp/scatter.h"

namespace uiw::qp {

using core::Bytes;
using core::TermCode;
using rdmap::Opcode;

// What the message has behind the segment that has begun, and how it is cut: by uiwarp as the
// announcement says, by others most likely as before.
Rx::Expected Rx::expected() const {
  if (ddp::is_last(open_.header[0])) return {};
  const uint32_t payload = open_segment().payload_size();
  Announcement message = this_write_;
  uint64_t begun = write_octets_;
  if (!open_.tagged) {
    message = this_send_;
    begun = uint64_t{send_octets_} + open_.left;
  } else if (open_.opcode() == Opcode::kReadResponse) {
    message = {shared_->outstanding_requests.front()->length, payload};
    begun = response_octets_ + open_.left;
  } else if (ddp::decode_tagged(open_.header).to != write_from_ + write_octets_ - payload) {
    return {};  // not where it was to go on
  }
  // Another size than announced: then nothing is known.
  if (message.length <= begun || message.segment != payload) return {};
  return {message.length - begun, payload};
}

bool Rx::land(Landing& out) {
  if (!may_land() || ended_ || waiting_ != RxStatus::kOk) return false;
  const Expected expected = this->expected();
  const uint64_t ahead = std::min<uint64_t>(expected.octets, expected.segment * Landing::kAhead);
  const bool write = open_.opcode() == Opcode::kWrite;
  if (!(write ? find_write(out, ahead) : find_sges(out, ahead))) return false;
  uint64_t found = 0;
  for (size_t i = 0; i < out.count; ++i) found += out.pieces[i].iov_len;
  const uint64_t room = found - std::min<uint64_t>(found, open_.left);
  // In what order the kernel stores is unknown: the end of a Write is placed here.
  const uint32_t held_back = write ? kPlacedLast : 0;
  out.pieces[0].iov_len -= room + held_back;
  out.size = out.open = found - room - held_back;
  add_ahead(out, expected, room, held_back);
  return true;
}

// Whatever is wrong is told when the octets are there.
bool Rx::find_write(Landing& out, uint64_t ahead) const {
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

bool Rx::find_sges(Landing& out, uint64_t ahead) const {
  const ibv_sge* sges = receive_.sges;
  uint32_t count = receive_.sge_count, pd = shared_->receive_pd;
  uint64_t offset = send_octets_;
  if (open_.tagged) {
    const SendWqe& wr = shared_->send_queue->slot(shared_->outstanding_requests.front()->slot);
    sges = wr.sges();
    count = wr.sge_count;
    pd = shared_->pd;
    offset = response_octets_;
  }
  out.count = 0;
  const auto take = [&](const ibv_sge& sge, uint64_t at, uint64_t size) {
    if (out.count == Landing::kPlaces) return false;
    mem::RegionRef region = shared_->memory->find(sge.lkey);
    if (!region ||
        mem::check(*region, pd, sge.addr + at, size, mem::kLocalWrite) != mem::Fault::kNone)
      return false;
    out.pieces[out.count] = {region->memory + (sge.addr + at - region->start), size};
    out.regions[out.count++] = std::move(region);
    return true;
  };
  for_each_sge(sges, count, offset, open_.left + ahead, take);
  if (out.count == 1) return true;
  // What is ahead has to be in one piece with the rest of this one.
  size_t left = open_.left;
  for (size_t i = 0; i < out.count; ++i) {
    iovec& piece = out.pieces[i];
    left -= piece.iov_len = std::min(piece.iov_len, left);
    if (left == 0) out.count = i + 1;
  }
  return out.count > 0;
}

// Behind the rest of this segment, all of it in one piece of memory, come `room` octets more.
void Rx::add_ahead(Landing& out, Expected expected, uint64_t room, uint32_t held_back) const {
  auto* at = static_cast<uint8_t*>(out.pieces[0].iov_base) + open_.left;
  const Segment segment = open_segment();
  uint8_t header[ddp::kUntaggedHeaderSize];
  std::memcpy(header, open_.header, sizeof header);
  uint32_t passed = segment.payload_size(), trailer = open_.trailer;
  while (out.next_count < Landing::kAhead) {
    const auto size = static_cast<uint32_t>(std::min<uint64_t>(expected.octets, expected.segment));
    if (size < kWorthLanding || size > room) return;
    room -= size;
    expected.octets -= size;
    ddp::move_on(header, passed, expected.octets == 0);
    Landing::Next& next = out.next[out.next_count++];
    next.lead = held_back + trailer;
    next.head = mpa::kLengthSize + segment.header_size;
    const uint32_t ulpdu_size = segment.header_size + size;
    core::store_be16(next.expected, static_cast<uint16_t>(ulpdu_size));
    std::memcpy(next.expected + mpa::kLengthSize, header, segment.header_size);
    const uint32_t early = Landing::kHead - next.head;  // payload that comes with the header
    next.place = at + early;
    next.size = size - early - held_back;
    out.pieces[out.count++] = {next.between, next.between_size()};
    out.pieces[out.count++] = {next.place, next.size};
    out.size += next.between_size() + next.size;
    at += size;
    passed = size;
    trailer = mpa::pad_size(ulpdu_size) + mpa::kCrcSize;
  }
}

// Of `octets` behind the open segment, copies to `rest` the first segment that is not the one that
// was expected, and all behind it. False: out of memory.
bool Rx::take_unexpected(const Landing& landing, size_t octets, RxStaging& rest) {
  size_t i = 0;
  for (; i < landing.next_count; ++i) {
    const Landing::Next& next = landing.next[i];
    // Of what has no payload yet nothing is anywhere.
    if (octets <= next.between_size()) return true;
    if (std::memcmp(next.between + next.lead, next.expected, next.head) != 0) break;
    octets -= std::min<size_t>(octets, next.between_size() + next.size);
  }
  const auto keep = [&](const uint8_t* from, size_t size) {
    size = std::min(size, octets);
    octets -= size;
    return rest.append({from, size});
  };
  for (; i < landing.next_count && octets > 0; ++i) {
    const Landing::Next& next = landing.next[i];
    if (!keep(next.between, next.between_size()) || !keep(next.place, next.size)) return false;
  }
  return true;
}

// Of `octets` behind the open segment the payload is where it belongs.
RxStatus Rx::take_expected(const Landing& landing, size_t octets) {
  for (size_t i = 0; octets > 0; ++i) {
    const Landing::Next& next = landing.next[i];
    const size_t between = std::min<size_t>(octets, next.between_size());
    const size_t payload = std::min<size_t>(octets - between, next.size);
    const RxStatus status = take({next.between, between});
    if (status != RxStatus::kOk) return status;
    advance(payload);
    octets -= between + payload;
  }
  return RxStatus::kOk;
}

RxStatus Rx::landed(Landing& landing, size_t octets, Bytes behind) {
  sends_first_ = false;
  const size_t landed = std::min(octets, landing.size);
  const size_t open = std::min(landed, landing.open);
  RxStaging rest;
  const bool kept = take_unexpected(landing, landed - open, rest);
  // What has come may want to invalidate what these hold.
  for (mem::RegionRef& region : landing.regions) region.reset();
  if (!kept) return raise(TermCode::kDdpLocalCatastrophic, nullptr);
  advance(open);
  RxStatus status = take_expected(landing, landed - open - rest.size());
  regions_.release();
  if (status == RxStatus::kOk) status = on_octets(rest.octets());
  // Behind a fault nothing is looked at; behind a Send that waits for its receive all is kept.
  if (status == RxStatus::kOk || has_to_wait(status))
    status = on_octets(behind.first(octets - landed));
  return status;
}

// `octets` of the open segment's payload are where they belong.
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
