// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An MPA start-up frame from a stranger, octet by octet, and what we make of it.
// Input: kind (1), flags of our wishes (1), our IRD (2), our ORD (2), then the stream.
#include <algorithm>
#include <cstring>
#include <vector>

#include "check.h"
#include "core/be.h"
#include "mpa/negotiator.h"
#include "mpa/startup_frame.h"
#include "rendezvous/handshake_message.h"

namespace {

using namespace uiw::mpa;

constexpr size_t kOwnOctets = 6;

std::vector<uint8_t> encoded(const StartupFrame& frame) {
  std::vector<uint8_t> out(kMaxStartupFrame);
  out.resize(encode(out.data(), frame));
  return out;
}

// The verdict on a growing stream never changes once there is one, and no prefix reads beyond it.
ParseStatus parse_growing(uiw::core::Bytes stream, FrameKind kind, StartupFrame& frame,
                          uint32_t& consumed) {
  ParseStatus status = ParseStatus::kNeedMore;
  for (size_t size = 0; size <= stream.size(); size++) {
    std::vector<uint8_t> prefix(stream.begin(), stream.begin() + static_cast<long>(size));
    ParseStatus now = parse(prefix, kind, frame, consumed);
    CHECK(status == ParseStatus::kNeedMore || now == status);
    status = now;
  }
  return status;
}

// Private data is a handshake message of a queue pair or not. One that is encodes to what was
// decoded.
void read_handshake_message(const StartupFrame& frame) {
  namespace rendezvous = uiw::rendezvous;
  const uiw::core::Bytes octets(frame.private_data, frame.private_size);
  const auto message = rendezvous::decode_handshake_message(octets);
  CHECK(!message || !rendezvous::is_of_another_version(octets));
  if (!message) return;
  uint8_t again[rendezvous::kHandshakeMessageSize];
  rendezvous::encode(again, *message);
  CHECK(octets.size() == sizeof again && std::memcmp(again, octets.data(), sizeof again) == 0);
}

void judge_as_responder(const Wishes& wishes, const StartupFrame& request) {
  offered_depths(request, wishes);
  Agreement agreement;
  StartupFrame reply = make_reply(wishes, request, agreement);
  CHECK(agreement.ird >= 1 && agreement.ird <= wishes.max_ird);
  CHECK(agreement.ord <= wishes.max_ord);
  CHECK(agreement.tx_markers == request.markers && agreement.rx_markers == reply.markers);
  CHECK(encoded(reply).size() == (request.enhanced ? 24u : 20u));
  CHECK(encoded(make_reject(wishes, request)).size() == (request.enhanced ? 24u : 20u));
}

void judge_as_initiator(const Wishes& wishes, const StartupFrame& reply) {
  Agreement agreement;
  uiw::core::TermCode code;
  StartupFrame request = make_request(wishes);
  if (judge_reply(wishes, request, reply, agreement, code) != ReplyVerdict::kAccepted) return;
  CHECK(agreement.ird <= wishes.max_ird && agreement.ord <= wishes.max_ord);
  CHECK(agreement.rtr == Rtr::kNone || request.enhanced);
  CHECK(agreement.crc == (request.crc || reply.crc));
  CHECK(agreement.tx_markers == reply.markers && agreement.rx_markers == request.markers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kOwnOctets) return 0;
  FrameKind kind = data[0] & 1 ? FrameKind::kReply : FrameKind::kRequest;
  Wishes wishes;
  wishes.crc = data[1] & 1;
  wishes.peer_to_peer = data[1] & 2;
  wishes.revision = data[1] & 4 ? 2 : 1;
  wishes.markers = data[1] & 8;
  wishes.rtr = data[1] & 16 ? Rtr::kRead : data[1] & 32 ? Rtr::kWrite : Rtr::kNone;
  wishes.ird = uiw::core::load_be16(data + 2);
  wishes.ord = uiw::core::load_be16(data + 4);

  StartupFrame frame;
  uint32_t consumed = 0;
  if (parse_growing({data + kOwnOctets, size - kOwnOctets}, kind, frame, consumed) !=
      ParseStatus::kComplete)
    return 0;
  CHECK(consumed >= kStartupHeaderSize && consumed <= size - kOwnOctets &&
        consumed <= kMaxStartupFrame);

  // What was understood survives the way out and in again.
  std::vector<uint8_t> octets = encoded(frame);
  CHECK(octets.size() == consumed);
  StartupFrame again;
  CHECK(parse(octets, kind, again, consumed) == ParseStatus::kComplete);
  CHECK(encoded(again) == octets);

  read_handshake_message(frame);
  if (kind == FrameKind::kRequest) {
    judge_as_responder(wishes, frame);
  } else {
    judge_as_initiator(wishes, frame);
  }
  return 0;
}
