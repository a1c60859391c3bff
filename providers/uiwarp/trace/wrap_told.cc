// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the stack and other instruments tell, and the events that the program takes.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/clock.h"
#include "core/gid.h"
#include "mpa/startup_frame.h"
#include "trace/wraps.h"

namespace uiw::trace {
namespace {

void write_addresses(Kind kind, uint32_t qp_num, const sockaddr_storage& local,
                     const sockaddr_storage& peer) {
  Record record = record_of(kind, qp_num, core::now());
  const in6_addr from = core::gid_of(local), to = core::gid_of(peer);
  record.addresses = {};
  std::memcpy(record.addresses.local, &from, sizeof from);
  std::memcpy(record.addresses.peer, &to, sizeof to);
  record.addresses.local_port = core::port_of(local);
  record.addresses.peer_port = core::port_of(peer);
  write(record);
}

static_assert(sizeof uiwarp_agreement::request == mpa::kStartupKeySize + sizeof Agreed::request);

}  // namespace

void injected(uint32_t qp_num, int line, const char* what) {
  Record record = record_of(Kind::kFault, qp_num, core::now());
  record.fault = {};
  record.fault.line = static_cast<uint32_t>(line);
  std::memcpy(record.fault.what, what, strnlen(what, sizeof record.fault.what));
  write(record);
}

namespace wrap {

void connected(uint32_t qp_num, const sockaddr_storage* local, const sockaddr_storage* peer) {
  write_addresses(Kind::kConnected, qp_num, *local, *peer);
  next->connected(qp_num, local, peer);
}

void agreed(uint32_t qp_num, const uiwarp_agreement* agreement) {
  if (agreement->again) write_addresses(Kind::kStands, qp_num, agreement->local, agreement->peer);
  Record record = record_of(Kind::kAgreed, qp_num, core::now());
  if (agreement->initiator) record.flags = kInitiator;
  record.agreed = {};
  record.agreed.began = agreement->began;
  record.agreed.agreed = agreement->agreed;
  std::memcpy(record.agreed.request, agreement->request + mpa::kStartupKeySize,
              sizeof record.agreed.request);
  std::memcpy(record.agreed.reply, agreement->reply + mpa::kStartupKeySize,
              sizeof record.agreed.reply);
  write(record);
  next->agreed(qp_num, agreement);
}

void fpdu_passed(uint32_t qp_num, const uiwarp_fpdu* fpdu) {
  Record record = record_of(Kind::kFpdu, qp_num, fpdu->time);
  if (fpdu->sent) record.flags = kSent;
  record.status = static_cast<uint8_t>(fpdu->head_size);
  record.fpdu = {};
  record.fpdu.position_low = static_cast<uint32_t>(fpdu->position);
  record.fpdu.position_high = static_cast<uint16_t>(fpdu->position >> 32);
  record.fpdu.ulpdu_size = fpdu->size;
  const size_t first = std::min<size_t>(fpdu->head_size, sizeof record.fpdu.head);
  std::memcpy(record.fpdu.head, fpdu->head, first);
  write(record);
  if (first < fpdu->head_size) {
    static_assert(sizeof record.fpdu.head + sizeof record.rest >= sizeof fpdu->head);
    record.kind = Kind::kFpduRest;
    std::memset(record.rest, 0, sizeof record.rest);
    std::memcpy(record.rest, fpdu->head + first, fpdu->head_size - first);
    write(record);
  }
  next->fpdu_passed(qp_num, fpdu);
}

void receive_awaited(uint32_t qp_num, uint64_t nanoseconds, int gave_up) {
  Record record = record_of(Kind::kAwaited, qp_num, core::now());
  record.work.bytes = nanoseconds;
  if (gave_up) record.flags = kInVain;
  write(record);
  next->receive_awaited(qp_num, nanoseconds, gave_up);
}

void receives_dropped(uint32_t qp_num, const uint64_t* wr_ids, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    Record record = record_of(Kind::kDropped, qp_num, core::now());
    record.work.wr_id = wr_ids[i];
    write(record);
  }
  next->receives_dropped(qp_num, wr_ids, count);
}

int peer_refused(uint32_t qp_num, uint32_t rkey, uint64_t address, uint64_t length) {
  Record record = record_of(Kind::kPeerRefused, qp_num, core::now());
  record.work.bytes = length;
  write(record);
  return next->peer_refused(qp_num, rkey, address, length);
}

void cm_event_taken(uint64_t uid, uint32_t event, int status) {
  Record record = record_of(Kind::kCmEvent, 0, core::now());
  record.opcode = static_cast<uint8_t>(event);
  record.work.wr_id = uid;
  record.work.error = static_cast<uint32_t>(status);
  write(record);
  next->cm_event_taken(uid, event, status);
}

void async_event_taken(uint32_t qp_num, uint32_t event) {
  Record record = record_of(Kind::kAsyncEvent, qp_num, core::now());
  record.opcode = static_cast<uint8_t>(event);
  write(record);
  next->async_event_taken(qp_num, event);
}

}  // namespace wrap
}  // namespace uiw::trace
