// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Literal frames: what we send, what we answer, what we make of the answers of others.
#include <gtest/gtest.h>

#include "mpa/negotiator.h"
#include "support/vectors.h"

namespace uiw::mpa {
namespace {

using test::concat;
using test::enhanced_block;
using test::Octets;

StartupFrame parsed(const Octets& octets, FrameKind kind) {
  StartupFrame frame;
  uint32_t consumed = 0;
  EXPECT_EQ(parse(octets, kind, frame, consumed), ParseStatus::kComplete);
  return frame;
}

// Octets 16 to the end: flags, revision, PD_Length and private data.
std::string tail_of(const StartupFrame& frame) {
  uint8_t out[kMaxStartupFrame];
  uint32_t size = encode(out, frame);
  return test::to_hex({out + 16, size - 16});
}

Wishes wishes_of(uint16_t ird, uint16_t ord) {
  Wishes wishes;
  wishes.ird = ird;
  wishes.ord = ord;
  return wishes;
}

// Conformance 5.2(1), ME-01, ME-15, MS-24.
TEST(NegotiatorRows, Requests) {
  EXPECT_EQ(tail_of(make_request(wishes_of(32, 16))), "500200048020c010");
  EXPECT_EQ(tail_of(make_request(wishes_of(0, 0))), "500200048001c001");
  EXPECT_EQ(tail_of(make_request(wishes_of(300, 0x3fff))), "500200048080c080");
  Wishes wishes = wishes_of(0, 5);
  wishes.peer_to_peer = false;
  EXPECT_EQ(tail_of(make_request(wishes)), "5002000400000005");
  wishes.crc = false;
  EXPECT_EQ(tail_of(make_request(wishes)), "1002000400000005");
  wishes = wishes_of(32, 16);
  wishes.revision = 1;
  EXPECT_EQ(tail_of(make_request(wishes)), "40010000");
  wishes.crc = false;
  EXPECT_EQ(tail_of(make_request(wishes)), "00010000");
}

struct ReplyRow {
  const char* what;
  Octets request;
  Wishes wishes;
  const char* reply;  // octets 16..
  bool crc;
  uint16_t ird, ord;
  Rtr rtr;
};

TEST(NegotiatorRows, Replies) {
  Wishes no_crc = wishes_of(16, 16);
  no_crc.crc = false;
  Wishes revision1 = wishes_of(16, 16);
  revision1.revision = 1;
  const ReplyRow rows[] = {
      {"V21: Read chosen of Write and Read", test::vector("V21-mpa-v2-req").octets,
       wishes_of(16, 16), "5002000480084010", true, 8, 16, Rtr::kRead},
      {"V21 again: that we ask in revision 1 ourselves changes no answer",
       test::vector("V21-mpa-v2-req").octets, revision1, "5002000480084010", true, 8, 16,
       Rtr::kRead},
      {"revision 1 without CRC, which we want", test::vector("V28-mpa-v1-req-nocrc").octets,
       wishes_of(4, 5), "40010000", true, 4, 5, Rtr::kNone},
      {"revision 1, CRC off at both ends", test::vector("V28-mpa-v1-req-nocrc").octets, no_crc,
       "00010000", false, 16, 16, Rtr::kNone},
      {"revision 1 with CRC, which we did not want", test::vector("V01-mpa-v1-req").octets, no_crc,
       "40010000", true, 16, 16, Rtr::kNone},
      {"a slot for an RNIC that reads first on revision 1",
       test::vector("V28-mpa-v1-req-nocrc").octets, wishes_of(0, 0), "40010000", true, 1, 0,
       Rtr::kNone},
      {"revision 2 without S", test::mpa_request(0, 2, {}), wishes_of(7, 8), "40020000", true, 7, 8,
       Rtr::kNone},
      {"siw's default: IRD 1, ORD 1, no flags", test::mpa_request(0x10, 2, enhanced_block(1, 1)),
       wishes_of(16, 16), "5002000400010001", true, 1, 1, Rtr::kNone},
      {"siw for perftest: IRD 0, ORD 0", test::mpa_request(0x10, 2, enhanced_block(0, 0)), no_crc,
       "1002000400010000", false, 1, 0, Rtr::kNone},
      {"A=0 with C and D: client/server", test::mpa_request(0x50, 2, enhanced_block(2, 0xc003)),
       wishes_of(9, 9), "5002000400030002", true, 3, 2, Rtr::kNone},
      {"only Write offered", test::mpa_request(0x50, 2, enhanced_block(0x8004, 0x8004)),
       wishes_of(9, 9), "5002000480048004", true, 4, 4, Rtr::kWrite},
      {"only Send offered: we name Write",
       test::mpa_request(0x50, 2, enhanced_block(0xc004, 0x0004)), wishes_of(9, 9),
       "5002000480048004", true, 4, 4, Rtr::kWrite},
      {"nothing offered: we name Write", test::mpa_request(0x50, 2, enhanced_block(0x8004, 0x0004)),
       wishes_of(9, 9), "5002000480048004", true, 4, 4, Rtr::kWrite},
      {"everything offered", test::mpa_request(0x50, 2, enhanced_block(0xc004, 0xc004)),
       wishes_of(9, 9), "5002000480044004", true, 4, 4, Rtr::kRead},
      {"ORD 0 with a Read RTR: IRD raised",
       test::mpa_request(0x50, 2, enhanced_block(0x8000, 0x4000)), wishes_of(0, 0),
       "5002000480014000", true, 1, 0, Rtr::kRead},
      {"depths beyond ours", test::mpa_request(0x50, 2, enhanced_block(300, 300)),
       wishes_of(200, 200), "5002000400800080", true, 128, 128, Rtr::kNone},
      {"no negotiation", test::mpa_request(0x50, 2, enhanced_block(0x3fff, 0x3fff)),
       wishes_of(5, 6), "500200043fff3fff", true, 5, 6, Rtr::kNone},
      {"no negotiation of our IRD only", test::mpa_request(0x50, 2, enhanced_block(0x8002, 0x7fff)),
       wishes_of(5, 6), "50020004bfff4002", true, 5, 2, Rtr::kRead},
  };
  for (const ReplyRow& row : rows) {
    SCOPED_TRACE(row.what);
    Agreement agreement;
    StartupFrame reply =
        make_reply(row.wishes, parsed(row.request, FrameKind::kRequest), agreement);
    EXPECT_EQ(tail_of(reply), row.reply);
    EXPECT_EQ(agreement.crc, row.crc);
    EXPECT_EQ(agreement.ird, row.ird);
    EXPECT_EQ(agreement.ord, row.ord);
    EXPECT_EQ(agreement.rtr, row.rtr);
    EXPECT_EQ(agreement.peer_to_peer, row.rtr != Rtr::kNone);
  }
}

struct JudgeRow {
  const char* what;
  Octets reply;
  Wishes wishes;
  ReplyVerdict verdict;
  core::TermCode code;
  bool crc;
  uint16_t ird, ord;
  Rtr rtr;
};

constexpr auto kNoCode = core::TermCode::kLocalCatastrophic;

TEST(NegotiatorRows, AcceptedReplies) {
  Wishes no_crc = wishes_of(16, 8);
  no_crc.crc = false;
  Wishes client_server = wishes_of(16, 8);
  client_server.peer_to_peer = false;
  Wishes revision1 = wishes_of(16, 300);
  revision1.revision = 1;
  constexpr auto kAccepted = ReplyVerdict::kAccepted;
  const JudgeRow rows[] = {
      {"V22: Read chosen", test::vector("V22-mpa-v2-rep").octets, wishes_of(16, 8), kAccepted,
       kNoCode, true, 16, 8, Rtr::kRead},
      {"Write chosen", test::mpa_reply(0x10, 2, enhanced_block(0x8008, 0x8010)), wishes_of(16, 8),
       kAccepted, kNoCode, true, 16, 8, Rtr::kWrite},
      {"both named: Read", test::mpa_reply(0x10, 2, enhanced_block(0x8008, 0xc010)),
       wishes_of(16, 8), kAccepted, kNoCode, true, 16, 8, Rtr::kRead},
      {"both named, no slot for a Read", test::mpa_reply(0x10, 2, enhanced_block(0x8000, 0xc000)),
       wishes_of(16, 8), kAccepted, kNoCode, true, 16, 0, Rtr::kWrite},
      {"A=0 though asked: no RTR", test::mpa_reply(0x50, 2, enhanced_block(4, 0xc004)),
       wishes_of(16, 8), kAccepted, kNoCode, true, 16, 4, Rtr::kNone},
      {"A=1 though not asked: no RTR", test::mpa_reply(0x10, 2, enhanced_block(0x8008, 0xc001)),
       client_server, kAccepted, kNoCode, true, 16, 8, Rtr::kNone},
      {"CRC by the Reply alone", test::mpa_reply(0x50, 2, enhanced_block(8, 8)), no_crc, kAccepted,
       kNoCode, true, 16, 8, Rtr::kNone},
      {"CRC off at both ends", test::mpa_reply(0x10, 2, enhanced_block(8, 8)), no_crc, kAccepted,
       kNoCode, false, 16, 8, Rtr::kNone},
      {"ORD lowered to the responder's IRD", test::mpa_reply(0x10, 2, enhanced_block(1, 8)),
       client_server, kAccepted, kNoCode, true, 16, 1, Rtr::kNone},
      {"IRD raised to the responder's ORD", test::mpa_reply(0x10, 2, enhanced_block(8, 128)),
       client_server, kAccepted, kNoCode, true, 128, 8, Rtr::kNone},
      {"no negotiation", test::mpa_reply(0x10, 2, enhanced_block(0x3fff, 0x3fff)), client_server,
       kAccepted, kNoCode, true, 16, 8, Rtr::kNone},
      {"revision 1", test::vector("V29-mpa-v1-rep-nocrc").octets, revision1, kAccepted, kNoCode,
       true, 16, 128, Rtr::kNone},
  };
  for (const JudgeRow& row : rows) {
    SCOPED_TRACE(row.what);
    Agreement agreement;
    core::TermCode code = kNoCode;
    EXPECT_EQ(judge_reply(row.wishes, make_request(row.wishes),
                          parsed(row.reply, FrameKind::kReply), agreement, code),
              row.verdict);
    EXPECT_EQ(agreement.crc, row.crc);
    EXPECT_EQ(agreement.ird, row.ird);
    EXPECT_EQ(agreement.ord, row.ord);
    EXPECT_EQ(agreement.rtr, row.rtr);
    EXPECT_EQ(agreement.peer_to_peer, row.rtr != Rtr::kNone);
    EXPECT_TRUE(agreement.initiator);
  }
}

TEST(NegotiatorRows, RefusedReplies) {
  Wishes wishes = wishes_of(16, 8);
  Wishes revision1 = wishes;
  revision1.revision = 1;
  struct Row {
    const char* what;
    Octets reply;
    Wishes wishes;
    ReplyVerdict verdict;
    core::TermCode code;
  };
  const Row rows[] = {
      {"rejected", test::mpa_reply(0x70, 2, enhanced_block(0x8008, 0x4008)), wishes,
       ReplyVerdict::kRejected, kNoCode},
      {"rejected with private data", test::vector("V31-mpa-v1-reject").octets, revision1,
       ReplyVerdict::kRejected, kNoCode},
      {"rejected in revision 1 though asked in 2", test::vector("V31-mpa-v1-reject").octets, wishes,
       ReplyVerdict::kRejected, kNoCode},
      {"rejected with markers", test::mpa_reply(0xf0, 2, enhanced_block(0, 0)), wishes,
       ReplyVerdict::kRejected, kNoCode},
      {"revision 1", test::mpa_reply(0x40, 1, {}), wishes, ReplyVerdict::kRevision1, kNoCode},
      {"revision 1 with S", test::mpa_reply(0x50, 1, enhanced_block(1, 1)), wishes,
       ReplyVerdict::kRevision1, kNoCode},
      {"no enhanced block", test::mpa_reply(0x40, 2, {}), wishes, ReplyVerdict::kMalformed,
       kNoCode},
      {"revision 2 to a Request of revision 1", test::mpa_reply(0x40, 2, {}), revision1,
       ReplyVerdict::kMalformed, kNoCode},
      {"enhanced, to a Request of revision 1", test::mpa_reply(0x50, 2, enhanced_block(1, 1)),
       revision1, ReplyVerdict::kMalformed, kNoCode},
      {"deeper than our maximum", test::mpa_reply(0x50, 2, enhanced_block(0x8008, 0x4000 | 129)),
       wishes, ReplyVerdict::kTerminate, core::TermCode::kMpaInsufficientIrd},
      {"Send only", test::mpa_reply(0x50, 2, enhanced_block(0xc008, 0x0008)), wishes,
       ReplyVerdict::kTerminate, core::TermCode::kMpaNoMatchingRtr},
      {"no RTR named", test::mpa_reply(0x50, 2, enhanced_block(0x8008, 0x0008)), wishes,
       ReplyVerdict::kTerminate, core::TermCode::kMpaNoMatchingRtr},
      {"Read without a slot for it", test::mpa_reply(0x50, 2, enhanced_block(0x8000, 0x4008)),
       wishes, ReplyVerdict::kTerminate, core::TermCode::kMpaNoMatchingRtr},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Agreement agreement;
    core::TermCode code = kNoCode;
    EXPECT_EQ(judge_reply(row.wishes, make_request(row.wishes),
                          parsed(row.reply, FrameKind::kReply), agreement, code),
              row.verdict);
    EXPECT_EQ(code, row.code);
  }
}

TEST(NegotiatorRows, Rejects) {
  Wishes wishes = wishes_of(4, 4);
  auto reject = [&](const Octets& request) {
    return tail_of(make_reject(wishes, parsed(request, FrameKind::kRequest)));
  };
  EXPECT_EQ(reject(test::vector("V01-mpa-v1-req").octets), "60010000");
  EXPECT_EQ(reject(test::mpa_request(0xc0, 1, {})), "60010000") << "markers are not mirrored";
  EXPECT_EQ(reject(test::mpa_request(0x40, 2, {})), "60020000");
  EXPECT_EQ(reject(test::vector("V21-mpa-v2-req").octets), "7002000480084010");
  EXPECT_EQ(reject(test::mpa_request(0x50, 2, enhanced_block(0x3fff, 300))), "7002000400803fff");
}

// MS-25, MS-26: a receiver asks for markers in its own frame; by default we do not.
TEST(NegotiatorRows, Markers) {
  for (const bool own : {false, true}) {
    Wishes wishes = wishes_of(16, 16);
    wishes.markers = own;
    const StartupFrame asked = make_request(wishes);
    EXPECT_EQ(tail_of(asked), own ? "d00200048010c010" : "500200048010c010");
    for (const bool theirs : {false, true}) {
      Agreement at_us;
      const Octets request = test::mpa_request(theirs ? 0xc0 : 0x40, 1, {});
      EXPECT_EQ(tail_of(make_reply(wishes, parsed(request, FrameKind::kRequest), at_us)),
                own ? "c0010000" : "40010000");
      EXPECT_EQ(at_us.rx_markers, own);
      EXPECT_EQ(at_us.tx_markers, theirs);

      core::TermCode code = kNoCode;
      const Octets reply = test::mpa_reply(theirs ? 0xd0 : 0x50, 2, enhanced_block(0x8008, 0x4008));
      EXPECT_EQ(judge_reply(wishes, asked, parsed(reply, FrameKind::kReply), at_us, code),
                ReplyVerdict::kAccepted);
      EXPECT_EQ(at_us.rx_markers, own);
      EXPECT_EQ(at_us.tx_markers, theirs);
    }
  }
}

// One kind of RTR only: not offered otherwise, not sent otherwise, chosen if it is offered.
TEST(NegotiatorRows, OneKindOfRtr) {
  struct Row {
    Rtr wanted;
    const char* request;
    uint16_t other;
  };
  for (const Row& row : {Row{Rtr::kRead, "5002000480104010", 0x8010},
                         Row{Rtr::kWrite, "5002000480108010", 0x4010}}) {
    Wishes wishes = wishes_of(16, 16);
    wishes.rtr = row.wanted;
    const StartupFrame request = make_request(wishes);
    EXPECT_EQ(tail_of(request), row.request);
    Agreement agreement;
    core::TermCode code = kNoCode;
    const auto judge = [&](uint16_t second) {
      const Octets reply = test::mpa_reply(0x50, 2, enhanced_block(0x8010, second));
      return judge_reply(wishes, request, parsed(reply, FrameKind::kReply), agreement, code);
    };
    EXPECT_EQ(judge(0xc010), ReplyVerdict::kAccepted);
    EXPECT_EQ(agreement.rtr, row.wanted);
    EXPECT_EQ(judge(row.other), ReplyVerdict::kTerminate);
    EXPECT_EQ(code, core::TermCode::kMpaNoMatchingRtr);

    const auto answer = [&](uint16_t second) {
      const Octets offer = test::mpa_request(0x50, 2, enhanced_block(0x8010, second));
      return make_reply(wishes, parsed(offer, FrameKind::kRequest), agreement).enhanced;
    };
    EXPECT_EQ(answer(0xc010)->rtr_read, row.wanted == Rtr::kRead);
    EXPECT_EQ(answer(0xc010)->rtr_write, row.wanted == Rtr::kWrite);
    // ME-16: the one in common, also when we prefer another.
    const bool other_is_read = row.other == 0x4010;
    EXPECT_EQ(answer(row.other)->rtr_read, other_is_read);
    EXPECT_EQ(agreement.rtr, other_is_read ? Rtr::kRead : Rtr::kWrite);
  }
}

// An unenhanced peer says nothing of its depths: the application may use all that we have.
TEST(NegotiatorRows, OffersOurLimitsToApplicationsOfUnenhancedPeers) {
  Wishes limits;
  limits.max_ird = 100;
  limits.max_ord = 50;
  PeerDepths depths =
      offered_depths(parsed(test::vector("V01-mpa-v1-req").octets, FrameKind::kRequest), limits);
  EXPECT_EQ(depths.responder_resources, 100);
  EXPECT_EQ(depths.initiator_depth, 50);
  depths =
      offered_depths(parsed(test::vector("V21-mpa-v2-req").octets, FrameKind::kRequest), limits);
  EXPECT_EQ(depths.responder_resources, 8);
  EXPECT_EQ(depths.initiator_depth, 16);
}

}  // namespace
}  // namespace uiw::mpa
