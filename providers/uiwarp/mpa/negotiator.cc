// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mpa/negotiator.h"

#include <algorithm>

namespace uiw::mpa {
namespace {

uint16_t own_ird(const Wishes& wishes) {
  return std::min(wishes.ird, wishes.max_ird);
}
uint16_t own_ord(const Wishes& wishes) {
  return std::min(wishes.ord, wishes.max_ord);
}

// What the other end may choose for a depth of ours: at most our limit, all of it when the peer
// leaves the matter to the applications (RFC 6581 9.1).
uint16_t capped(uint16_t depth, uint16_t limit) {
  return std::min(depth, limit);
}

// RFC 6581 9.2 leaves the responder the choice among what the initiator offers. Read first: RNICs
// can all do it and some nothing else. With nothing in common one option that we have MUST be
// named; the initiator then gives up.
Rtr choose_rtr(const Wishes& wishes, const Enhanced& offer) {
  if (wishes.rtr == Rtr::kWrite && offer.rtr_write) return Rtr::kWrite;
  return offer.rtr_read ? Rtr::kRead : Rtr::kWrite;
}

void answer_peer_to_peer(const Wishes& wishes, const Enhanced& offer, Enhanced& answer) {
  // 9.2: A is copied; with A=0 the other flags MUST be 0, and the initiator's are ignored.
  answer.peer_to_peer = offer.peer_to_peer;
  if (!offer.peer_to_peer) return;
  answer.rtr_read = choose_rtr(wishes, offer) == Rtr::kRead;
  answer.rtr_write = !answer.rtr_read;
}

// The part of a Reply that acceptance and refusal share.
StartupFrame blank_reply(const Wishes& wishes, const StartupFrame& request) {
  StartupFrame reply;
  reply.kind = FrameKind::kReply;
  reply.revision = request.revision;  // RFC 6581 10: answer in the form that was asked
  reply.crc = wishes.crc || request.crc;
  return reply;
}

}  // namespace

StartupFrame make_request(const Wishes& wishes) {
  StartupFrame request;
  request.kind = FrameKind::kRequest;
  request.revision = wishes.revision;
  request.crc = wishes.crc;
  request.markers = wishes.markers;
  if (wishes.revision < 2) return request;  // RFC 6581 6: no enhanced set-up on revision 1
  Enhanced block;
  block.ird = std::max(own_ird(wishes), wishes.least);
  block.ord = std::max(own_ord(wishes), wishes.least);
  if (wishes.peer_to_peer) {
    // 9.2: every option that we can send. Not a Send: whether it would use up a receive of the
    // peer's application is nowhere said.
    block.peer_to_peer = true;
    block.rtr_write = wishes.rtr != Rtr::kRead;
    block.rtr_read = wishes.rtr != Rtr::kWrite;
    block.ird = std::max<uint16_t>(block.ird, 1);
    block.ord = std::max<uint16_t>(block.ord, 1);
  }
  request.enhanced = block;
  return request;
}

ReplyVerdict judge_reply(const Wishes& wishes, const StartupFrame& request,
                         const StartupFrame& reply, Agreement& out, core::TermCode& code) {
  if (reply.reject) return ReplyVerdict::kRejected;
  if (request.revision > 1 && reply.revision == 1) return ReplyVerdict::kRevision1;
  // RFC 6581 10: the answer has the form of the question.
  if (reply.revision != request.revision) return ReplyVerdict::kMalformed;
  if (reply.enhanced.has_value() != request.enhanced.has_value()) return ReplyVerdict::kMalformed;

  Agreement agreed;
  agreed.initiator = true;
  agreed.revision = reply.revision;
  agreed.request = head_of(request);
  agreed.reply = head_of(reply);
  agreed.crc = request.crc || reply.crc;  // RFC 5044 7.1.1: either end can have it
  // There, too: each end says what it wants to receive.
  agreed.tx_markers = reply.markers;
  agreed.rx_markers = request.markers;
  agreed.ird = own_ird(wishes);
  agreed.ord = own_ord(wishes);
  if (!request.enhanced) {
    agreed.used_ird = agreed.ird;
    out = agreed;
    return ReplyVerdict::kAccepted;
  }

  const Enhanced& asked = *request.enhanced;
  const Enhanced& answer = *reply.enhanced;
  agreed.ird = asked.ird;
  agreed.ord = asked.ord;
  // 9.1: our ORD at most the responder's IRD, our IRD at least its ORD; all ones changes nothing.
  if (answer.ird != kNoNegotiation) agreed.ord = std::min(agreed.ord, answer.ird);
  if (answer.ord != kNoNegotiation && answer.ord > agreed.ird) {
    if (answer.ord > wishes.max_ird) {
      code = core::TermCode::kMpaInsufficientIrd;
      return ReplyVerdict::kTerminate;
    }
    agreed.ird = answer.ord;
  }
  agreed.used_ird = answer.ord == kNoNegotiation ? agreed.ird : answer.ord;
  // A reply with A=0 to A=1 comes from RNICs that have the feature switched off: they expect an
  // ordinary first message. A=1 that we did not ask for changes nothing for us either.
  agreed.peer_to_peer = asked.peer_to_peer && answer.peer_to_peer;
  if (agreed.peer_to_peer) {
    // 9.2: one of what both have. A Read needs a slot at the responder.
    if (answer.rtr_read && asked.rtr_read && agreed.ord >= 1) {
      agreed.rtr = Rtr::kRead;
    } else if (answer.rtr_write && asked.rtr_write) {
      agreed.rtr = Rtr::kWrite;
    } else {
      code = core::TermCode::kMpaNoMatchingRtr;
      return ReplyVerdict::kTerminate;
    }
  }
  out = agreed;
  return ReplyVerdict::kAccepted;
}

PeerDepths offered_depths(const StartupFrame& request, const Wishes& limits) {
  // Without negotiation the peer's depths are unknown: the application may use all that we have.
  if (!request.enhanced) return {limits.max_ird, limits.max_ord};
  return {capped(request.enhanced->ord, limits.max_ird),
          capped(request.enhanced->ird, limits.max_ord)};
}

StartupFrame make_reply(const Wishes& wishes, const StartupFrame& request, Agreement& out) {
  StartupFrame reply = blank_reply(wishes, request);
  reply.markers = wishes.markers;
  out = Agreement{};
  out.initiator = false;
  out.revision = request.revision;
  out.crc = reply.crc;
  out.tx_markers = request.markers;
  out.rx_markers = wishes.markers;
  // At least one slot in any case: some RNICs begin with a zero-length Read even on revision 1.
  out.ird = std::max<uint16_t>(own_ird(wishes), 1);
  out.ord = own_ord(wishes);
  if (!request.enhanced) return reply;

  const Enhanced& offer = *request.enhanced;
  Enhanced answer;
  answer_peer_to_peer(wishes, offer, answer);
  // RFC 6581 9.1: our IRD is what the initiator wants to use, as far as we have or give it, our ORD
  // at most its IRD. All ones in a field: our value stays as the application set it, and we say all
  // ones.
  if (offer.ord == kNoNegotiation) {
    answer.ird = kNoNegotiation;
  } else {
    const uint16_t most =
        wishes.keeps_ird ? std::max(own_ird(wishes), wishes.least) : wishes.max_ird;
    out.ird = std::max<uint16_t>(capped(offer.ord, most), 1);
    answer.ird = out.ird;
  }
  if (offer.ird == kNoNegotiation) {
    answer.ord = kNoNegotiation;
  } else {
    out.ord = std::min(std::max(out.ord, wishes.least), offer.ird);
    answer.ord = out.ord;
  }
  out.peer_to_peer = offer.peer_to_peer;
  if (offer.peer_to_peer) out.rtr = choose_rtr(wishes, offer);
  reply.enhanced = answer;
  return reply;
}

StartupFrame make_reject(const Wishes& wishes, const StartupFrame& request) {
  StartupFrame reply = blank_reply(wishes, request);
  reply.reject = true;
  if (!request.enhanced) return reply;
  const Enhanced& offer = *request.enhanced;
  Enhanced answer;
  answer_peer_to_peer(wishes, offer, answer);
  // RFC 6581 9.1: depths go to the initiator's application with a refusal, too: what we could give.
  answer.ird = offer.ord == kNoNegotiation ? kNoNegotiation : capped(offer.ord, wishes.max_ird);
  answer.ord = offer.ird == kNoNegotiation ? kNoNegotiation : capped(offer.ird, wishes.max_ord);
  reply.enhanced = answer;
  return reply;
}

}  // namespace uiw::mpa
