// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Invariants of RFC 5044 7.1 and RFC 6581 9 over the whole matrix of what two ends can say; literal
// expected rows are in negotiator_rows_test.cc.
#include "mpa/negotiator.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace uiw::mpa {
namespace {

constexpr uint16_t kDepths[] = {0, 1, 2, 16, 127, 128, 129, 300, 0x3ffe, kNoNegotiation};
constexpr uint16_t kLimit = 128;

struct Offer {
  bool send, write, read;
};
constexpr Offer kOffers[] = {{false, false, false}, {true, false, false}, {false, true, false},
                             {false, false, true},  {true, true, false},  {true, false, true},
                             {false, true, true},   {true, true, true}};

StartupFrame request_of(uint8_t revision, bool crc) {
  StartupFrame frame;
  frame.kind = FrameKind::kRequest;
  frame.revision = revision;
  frame.crc = crc;
  return frame;
}

// Calls `visit(request, wishes)` for every enhanced Request and every responder.
template <class Visit>
void for_each_enhanced_request(Visit visit) {
  for (bool crc : {false, true})
    for (bool own_crc : {false, true})
      for (bool peer_to_peer : {false, true})
        for (const Offer& offer : kOffers)
          for (uint16_t ird : kDepths)
            for (uint16_t ord : kDepths)
              for (uint16_t own : {0, 1, 16, 128, 300}) {
                StartupFrame request = request_of(2, crc);
                request.enhanced =
                    Enhanced{peer_to_peer, offer.send, offer.write, offer.read, ird, ord};
                Wishes wishes;
                wishes.crc = own_crc;
                wishes.ird = own;
                wishes.ord = static_cast<uint16_t>(own + 1);
                visit(request, wishes);
              }
}

TEST(Negotiator, ReplyKeepsTheRulesForEveryEnhancedRequest) {
  for_each_enhanced_request([](const StartupFrame& request, const Wishes& wishes) {
    const Enhanced& asked = *request.enhanced;
    Agreement agreement;
    StartupFrame reply = make_reply(wishes, request, agreement);
    ASSERT_EQ(reply.kind, FrameKind::kReply);
    ASSERT_EQ(reply.revision, 2);
    ASSERT_FALSE(reply.reject);
    ASSERT_FALSE(reply.markers);
    ASSERT_EQ(reply.private_size, 0);
    ASSERT_TRUE(reply.enhanced);  // ME-03
    const Enhanced& answer = *reply.enhanced;

    ASSERT_FALSE(agreement.initiator);
    ASSERT_EQ(agreement.revision, 2);
    // MS-22: on if either wants it.
    ASSERT_EQ(agreement.crc, request.crc || wishes.crc);
    ASSERT_EQ(request.crc || reply.crc, agreement.crc);
    ASSERT_FALSE(agreement.tx_markers || agreement.rx_markers);

    // ME-13 to ME-16: A copied; exactly one option that we have, a common one if there is one.
    ASSERT_EQ(answer.peer_to_peer, asked.peer_to_peer);
    ASSERT_EQ(agreement.peer_to_peer, asked.peer_to_peer);
    ASSERT_FALSE(answer.rtr_send);
    ASSERT_EQ(answer.rtr_read + answer.rtr_write, asked.peer_to_peer ? 1 : 0);
    ASSERT_EQ(agreement.rtr == Rtr::kRead, answer.rtr_read);
    ASSERT_EQ(agreement.rtr == Rtr::kWrite, answer.rtr_write);
    if (asked.peer_to_peer && (asked.rtr_read || asked.rtr_write)) {
      ASSERT_TRUE((asked.rtr_read && answer.rtr_read) || (asked.rtr_write && answer.rtr_write));
    }

    // ME-07, ME-11, ME-12.
    ASSERT_GE(agreement.ird, 1);
    ASSERT_LE(agreement.ird, kLimit);
    ASSERT_LE(agreement.ord, std::min(wishes.ord, kLimit));
    if (asked.ord == kNoNegotiation) {
      ASSERT_EQ(answer.ird, kNoNegotiation);
      ASSERT_EQ(agreement.ird, std::clamp<uint16_t>(wishes.ird, 1, kLimit));
    } else {
      ASSERT_EQ(answer.ird, agreement.ird);
      ASSERT_GE(agreement.ird, std::min(asked.ord, kLimit));
    }
    if (asked.ird == kNoNegotiation) {
      ASSERT_EQ(answer.ord, kNoNegotiation);
      ASSERT_EQ(agreement.ord, std::min(wishes.ord, kLimit));
    } else {
      ASSERT_EQ(answer.ord, agreement.ord);
      ASSERT_LE(agreement.ord, asked.ird);
    }
  });
}

TEST(Negotiator, RejectMirrorsEveryEnhancedRequest) {
  for_each_enhanced_request([](const StartupFrame& request, const Wishes& wishes) {
    StartupFrame reply = make_reject(wishes, request);
    ASSERT_EQ(reply.kind, FrameKind::kReply);
    ASSERT_TRUE(reply.reject);
    ASSERT_FALSE(reply.markers);
    ASSERT_EQ(reply.revision, 2);
    if (request.crc) {
      ASSERT_TRUE(reply.crc);
    }
    ASSERT_TRUE(reply.enhanced);
    ASSERT_EQ(reply.enhanced->peer_to_peer, request.enhanced->peer_to_peer);
    ASSERT_EQ(reply.enhanced->rtr_read + reply.enhanced->rtr_write,
              request.enhanced->peer_to_peer ? 1 : 0);
    uint16_t ord = request.enhanced->ord;
    uint16_t ird = request.enhanced->ird;
    ASSERT_EQ(reply.enhanced->ird, ord == kNoNegotiation ? kNoNegotiation : std::min(ord, kLimit));
    ASSERT_EQ(reply.enhanced->ord, ird == kNoNegotiation ? kNoNegotiation : std::min(ird, kLimit));
  });
}

TEST(Negotiator, OffersTheApplicationThePeersDepthsWithinOurLimits) {
  for_each_enhanced_request([](const StartupFrame& request, const Wishes& wishes) {
    PeerDepths depths = offered_depths(request, wishes);
    ASSERT_EQ(depths.responder_resources, std::min(request.enhanced->ord, kLimit));
    ASSERT_EQ(depths.initiator_depth, std::min(request.enhanced->ird, kLimit));
  });
}

// Calls `visit(wishes, request, reply)` for every enhanced Reply to every Request of ours.
template <class Visit>
void for_each_enhanced_reply(Visit visit) {
  for (bool crc : {false, true})
    for (bool peer_crc : {false, true})
      for (bool own_peer_to_peer : {false, true})
        for (bool peer_to_peer : {false, true})
          for (const Offer& answer : kOffers)
            for (uint16_t ird : kDepths)
              for (uint16_t ord : kDepths)
                for (uint16_t own : {0, 1, 16, 128, 300}) {
                  Wishes wishes;
                  wishes.crc = crc;
                  wishes.peer_to_peer = own_peer_to_peer;
                  wishes.ird = own;
                  wishes.ord = static_cast<uint16_t>(own + 1);
                  StartupFrame request = make_request(wishes);
                  StartupFrame reply = request_of(2, peer_crc);
                  reply.kind = FrameKind::kReply;
                  reply.enhanced =
                      Enhanced{peer_to_peer, answer.send, answer.write, answer.read, ird, ord};
                  visit(wishes, request, reply);
                }
}

TEST(Negotiator, JudgesEveryEnhancedReply) {
  for_each_enhanced_reply(
      [](const Wishes& wishes, const StartupFrame& request, const StartupFrame& reply) {
        const Enhanced& answer = *reply.enhanced;
        Agreement agreement;
        auto code = core::TermCode::kLocalCatastrophic;
        ReplyVerdict verdict = judge_reply(wishes, request, reply, agreement, code);

        // ME-09.
        bool too_deep = answer.ord != kNoNegotiation && answer.ord > kLimit;
        uint16_t ord = request.enhanced->ord;
        if (answer.ird != kNoNegotiation) ord = std::min(ord, answer.ird);
        bool rtr = wishes.peer_to_peer && answer.peer_to_peer;
        bool can_send_rtr = answer.rtr_write || (answer.rtr_read && ord >= 1);
        if (too_deep) {
          ASSERT_EQ(verdict, ReplyVerdict::kTerminate);
          ASSERT_EQ(code, core::TermCode::kMpaInsufficientIrd);
          return;
        }
        if (rtr && !can_send_rtr) {
          // ME-18.
          ASSERT_EQ(verdict, ReplyVerdict::kTerminate);
          ASSERT_EQ(code, core::TermCode::kMpaNoMatchingRtr);
          return;
        }
        ASSERT_EQ(verdict, ReplyVerdict::kAccepted);
        ASSERT_TRUE(agreement.initiator);
        ASSERT_EQ(agreement.revision, 2);
        ASSERT_EQ(agreement.crc, request.crc || reply.crc);
        ASSERT_EQ(agreement.ord, ord);  // ME-08, ME-11
        ASSERT_LE(agreement.ird, kLimit);
        ASSERT_GE(agreement.ird, request.enhanced->ird);
        if (answer.ord != kNoNegotiation) {
          ASSERT_GE(agreement.ird, answer.ord);
        }
        ASSERT_EQ(agreement.peer_to_peer, rtr);
        ASSERT_EQ(agreement.rtr != Rtr::kNone, rtr);
        if (agreement.rtr == Rtr::kRead) {
          ASSERT_TRUE(answer.rtr_read && agreement.ord >= 1);
        }
        if (agreement.rtr == Rtr::kWrite) {
          ASSERT_TRUE(answer.rtr_write);
        }
      });
}

// Our initiator and our responder always come to the same result, within the rules of both.
// What the stack needs for itself. Linux siw without enhanced set-up ends a connection by the first
// Read that its program did not provide for.
TEST(Negotiator, TheLeastDepthsAreForPeersThatSayWhatTheyHave) {
  Wishes wishes, plain;
  wishes.peer_to_peer = plain.peer_to_peer = false;
  wishes.least = 1;
  Agreement at_responder, at_initiator;
  core::TermCode code{};

  const StartupFrame request = make_request(wishes);
  EXPECT_EQ(request.enhanced->ird, 1);
  EXPECT_EQ(request.enhanced->ord, 1);
  StartupFrame reply = make_reply(wishes, request, at_responder);
  EXPECT_EQ(at_responder.ord, 1);
  ASSERT_EQ(judge_reply(wishes, request, reply, at_initiator, code), ReplyVerdict::kAccepted);
  EXPECT_EQ(at_initiator.ord, 1);

  // The peer says that it has none.
  make_reply(wishes, make_request(plain), at_responder);
  EXPECT_EQ(at_responder.ord, 0);

  wishes.revision = plain.revision = 1;
  const StartupFrame old_request = make_request(wishes);
  reply = make_reply(wishes, old_request, at_responder);
  EXPECT_EQ(at_responder.ord, 0);
  ASSERT_EQ(judge_reply(wishes, old_request, reply, at_initiator, code), ReplyVerdict::kAccepted);
  EXPECT_EQ(at_initiator.ord, 0);
}

// As InfiniBand's, which is less than the initiator asked for.
TEST(Negotiator, AResponderMayKeepItsIrd) {
  Wishes asking, answering;
  asking.ird = 5;
  asking.ord = 3;
  answering.keeps_ird = true;
  answering.ord = 4;
  struct Row {
    uint16_t own, least, agreed;
  };
  for (const Row& row : {Row{2, 0, 2}, Row{9, 0, 3}, Row{0, 0, 1}, Row{1, 2, 2}, Row{0, 9, 3}}) {
    answering.ird = row.own;
    answering.least = row.least;
    const StartupFrame request = make_request(asking);
    Agreement at_responder, at_initiator;
    const StartupFrame reply = make_reply(answering, request, at_responder);
    core::TermCode code{};
    ASSERT_EQ(judge_reply(asking, request, reply, at_initiator, code), ReplyVerdict::kAccepted);
    EXPECT_EQ(at_responder.ird, row.agreed) << row.own;
    EXPECT_EQ(at_initiator.ord, row.agreed) << row.own;
    EXPECT_EQ(at_initiator.ird, 5);
    EXPECT_EQ(at_initiator.used_ird, at_responder.ord);
  }
}

TEST(Negotiator, TwoEndsOfUsAgree) {
  constexpr uint16_t kOwn[] = {0, 1, 16, 128, 300};
  for (uint8_t revision : {1, 2})
    for (bool crc_a : {false, true})
      for (int other : {0, 1, 2, 3, 4, 5, 6, 7})
        for (bool peer_to_peer : {false, true})
          for (uint16_t ird_a : kOwn)
            for (uint16_t ord_a : kOwn)
              for (uint16_t ird_b : kOwn)
                for (uint16_t ord_b : kOwn) {
                  const bool crc_b = other & 1, markers_a = other & 2, markers_b = other & 4;
                  Wishes a{.revision = revision,
                           .crc = crc_a,
                           .markers = markers_a,
                           .peer_to_peer = peer_to_peer,
                           .ird = ird_a,
                           .ord = ord_a};
                  Wishes b{.crc = crc_b, .markers = markers_b, .ird = ird_b, .ord = ord_b};
                  StartupFrame request = make_request(a);
                  Agreement at_b;
                  StartupFrame reply = make_reply(b, request, at_b);
                  Agreement at_a;
                  core::TermCode code;
                  ASSERT_EQ(judge_reply(a, request, reply, at_a, code), ReplyVerdict::kAccepted);
                  ASSERT_EQ(at_a.crc, at_b.crc);
                  // MS-25: each direction as its receiver wants it.
                  ASSERT_EQ(at_a.rx_markers, markers_a);
                  ASSERT_EQ(at_b.tx_markers, markers_a);
                  ASSERT_EQ(at_b.rx_markers, markers_b);
                  ASSERT_EQ(at_a.tx_markers, markers_b);
                  ASSERT_EQ(at_a.revision, revision);
                  ASSERT_EQ(at_b.revision, revision);
                  ASSERT_EQ(at_a.rtr, at_b.rtr);
                  ASSERT_EQ(at_a.peer_to_peer, at_b.peer_to_peer);
                  ASSERT_EQ(at_a.peer_to_peer, revision == 2 && peer_to_peer);
                  if (revision == 2) {
                    ASSERT_LE(at_a.ord, at_b.ird);
                    ASSERT_LE(at_b.ord, at_a.ird);
                  }
                }
}

}  // namespace
}  // namespace uiw::mpa
