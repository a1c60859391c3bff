// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The wire vectors into the receive machine: whole, cut at every place, damaged at every place.
#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

class Negatives : public testing::TestWithParam<Outcome> {};

TEST_P(Negatives, LeadToTheRightTerminate) {
  const Outcome& expected = GetParam();
  const Octets original = negative(expected.id).octets;
  // In one piece, octet by octet, and cut in two at every place.
  for (size_t cut = 0; cut <= original.size() + 1; ++cut) {
    SCOPED_TRACE(cut);
    Machine m({.initiator = false});
    Scene scene(m.memory, expected.id);
    for (RecvWr& wr : scene.receive_list(expected.id)) m.receive(wr);
    const Octets octets = with_stags(original, scene.stags);
    const core::Bytes all(octets);
    qp::RxStatus status = qp::RxStatus::kOk;
    const auto feed = [&](core::Bytes piece) {
      if (status == qp::RxStatus::kOk) status = m.feed(piece);
    };
    if (cut <= octets.size()) {
      feed(all.first(cut));
      feed(all.subspan(cut));
    } else {
      for (const uint8_t& octet : octets) feed({&octet, 1});
    }
    ASSERT_EQ(status, expected.fine    ? qp::RxStatus::kOk
                      : expected.quiet ? qp::RxStatus::kTerminated
                                       : qp::RxStatus::kFault);
    std::vector<ibv_wc_status> statuses;
    for (const ibv_wc& wc : m.received()) statuses.push_back(wc.status);
    EXPECT_EQ(statuses, expected.receives);
    scene.expect_untouched(expected.id);
    if (expected.fine) continue;

    if (!expected.quiet) {
      const qp::RxFault& fault = m.rx().fault();
      EXPECT_EQ(static_cast<uint16_t>(fault.terminate.code), expected.code);
      EXPECT_EQ((fault.terminate.has_length ? 0x80 : 0) |
                    (fault.terminate.has_ddp_header ? 0x40 : 0) |
                    (fault.terminate.has_read_header ? 0x20 : 0),
                expected.flags);
      EXPECT_EQ(fault.event, expected.event);
    }
    // RFC 5044 8: nothing is looked at after an error.
    const Octets good =
        with_stags(fpdu(tagged(0, kVectorTarget, kVectorStart, of_text("again"))), scene.stags);
    EXPECT_EQ(m.feed(good), qp::RxStatus::kOk);
    EXPECT_EQ(m.feed(vector("V03-send5-crc").octets), qp::RxStatus::kOk);
    EXPECT_TRUE(m.received().empty());
    scene.expect_untouched(expected.id);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Negatives, testing::ValuesIn(outcomes()),
                         [](const auto& one) { return std::string(one.param.id); });

TEST(Outcomes, AreThoseOfTheNegatives) {
  ASSERT_EQ(outcomes().size(), negatives().size());
  for (const Outcome& o : outcomes()) {
    const std::string& expect = negative(o.id).expect;
    if (o.fine) {
      EXPECT_EQ(expect, "none");
    } else if (o.quiet) {
      EXPECT_EQ(expect, "close");
    } else {
      EXPECT_EQ(expect,
                to_hex(Octets{static_cast<uint8_t>(o.code >> 8), static_cast<uint8_t>(o.code)}))
          << o.id;
    }
  }
}

// A stream with everything that is right, for a machine with the scene's memory and one Read of its
// own.
struct Conversation {
  Conversation() : scene(m.memory), sink(m.memory, 16), big(m.memory, 256) {
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge(0, 5), sink.sge(5, 0), sink.sge(5, 11)}, 77)
               .to(0x1008, 0x11223344));
    const Octets request = ulpdus_of(m.transmit()).at(0);
    const uint32_t cookie = read_be32(&request[18]);
    for (uint64_t id = 1; id <= 3; ++id)
      m.receive(RecvWr({big.sge(0, 100), big.sge(100, 0), big.sge(100, 156)}, id));
    append("V03-send5-crc");
    append("V04-send-se-zero");
    add(fpdu(tagged(0, kVectorTarget, kVectorStart + 0x10, counting(114), false)));
    add(fpdu(tagged(2, cookie, 0, of_text("0123456"), false)));
    add(fpdu(tagged(0, kVectorTarget, kVectorStart + 0x10 + 114, counting(86))));
    append("V17-write-zero");
    Octets request_header =
        read_request(0xaabbcc01, 0x7f0000001000, 16, scene.target.stag(), kVectorStart + 8);
    add(fpdu(untagged(1, 1, 1, 0, request_header)));
    add(fpdu(untagged(3, 0, 3, 0, counting(110), false)));
    add(fpdu(tagged(2, cookie, 7, of_text("789abcdef"))));
    add(fpdu(untagged(3, 0, 3, 110, counting(40))));
    request_header = read_request(1, 0, 0, 0xdeadbe00, ~0ull);
    add(fpdu(untagged(1, 1, 2, 0, request_header)));
  }
  static Octets counting(size_t size) {
    Octets out(size);
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(i);
    return out;
  }
  void append(std::string_view id) { add(vector(id).octets); }
  void add(const Octets& octets) {
    const Octets fitted = with_stags(octets, scene.stags);
    stream.insert(stream.end(), fitted.begin(), fitted.end());
  }
  void expect_all_done() {
    const std::vector<ibv_wc> got = m.received();
    ASSERT_EQ(got.size(), 3u);
    const uint32_t sizes[] = {5, 0, 150};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].wr_id, i + 1);
      EXPECT_EQ(got[i].status, IBV_WC_SUCCESS);
      EXPECT_EQ(got[i].byte_len, sizes[i]);
      EXPECT_EQ(got[i].opcode, IBV_WC_RECV);
      EXPECT_EQ(got[i].qp_num, 42u);
    }
    Octets expected = pattern(kVectorLength, 1);
    const Octets first = counting(114), second = counting(86), third = counting(110),
                 fourth = counting(40);
    std::copy(first.begin(), first.end(), expected.begin() + 0x10);
    std::copy(second.begin(), second.end(), expected.begin() + 0x10 + 114);
    EXPECT_TRUE(scene.target.content() == expected);
    EXPECT_TRUE(std::equal(third.begin(), third.end(), big.data()));
    EXPECT_TRUE(std::equal(fourth.begin(), fourth.end(), big.data() + 110));
    EXPECT_EQ(sink.content(), of_text("0123456789abcdef"));
    EXPECT_TRUE(m.rx().at_boundary());
    EXPECT_TRUE(m.rx().take_news());
    const std::vector<Octets> answers = ulpdus_of(m.transmit());
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(to_hex(answers[0]),
              to_hex(tagged(2, 0xaabbcc01, 0x7f0000001000, {expected.data() + 8, 16})));
    EXPECT_EQ(to_hex(answers[1]), to_hex(tagged(2, 1, 0, {})));
    const std::vector<ibv_wc> read = m.sent();
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].wr_id, 77u);
    EXPECT_EQ(read[0].status, IBV_WC_SUCCESS);
  }
  Machine m;
  Scene scene;
  Buffer sink, big;
  Octets stream;
};

TEST(Positives, WorkInOnePieceAndOctetByOctet) {
  Conversation whole;
  EXPECT_EQ(whole.m.feed(whole.stream), qp::RxStatus::kOk);
  whole.expect_all_done();
  Conversation single;
  for (const uint8_t& octet : single.stream)
    ASSERT_EQ(single.m.feed({&octet, 1}), qp::RxStatus::kOk);
  single.expect_all_done();
}

TEST(Positives, WorkCutAtEveryPlace) {
  const size_t size = Conversation().stream.size();
  for (size_t cut = 1; cut < size; ++cut) {
    SCOPED_TRACE(cut);
    Conversation c;
    const core::Bytes all(c.stream);
    ASSERT_EQ(c.m.feed(all.first(cut)), qp::RxStatus::kOk);
    ASSERT_EQ(c.m.feed(all.subspan(cut)), qp::RxStatus::kOk);
    c.expect_all_done();
  }
}

TEST(Positives, WorkInPiecesOfEverySize) {
  const size_t size = Conversation().stream.size();
  for (size_t piece = 2; piece < size; piece += piece < 80 ? 1 : 37) {
    SCOPED_TRACE(piece);
    Conversation c;
    const core::Bytes all(c.stream);
    for (size_t at = 0; at < size; at += piece)
      ASSERT_EQ(c.m.feed(all.subspan(at, std::min(piece, size - at))), qp::RxStatus::kOk);
    c.expect_all_done();
  }
}

TEST(Positives, CompleteNothingEarly) {
  const Octets send = vector("V03-send5-crc").octets;
  for (size_t size = 0; size < send.size(); ++size) {
    SCOPED_TRACE(size);
    Machine m;
    Buffer to(m.memory, 16);
    m.receive(RecvWr({to.sge()}));
    EXPECT_EQ(m.feed(core::Bytes(send).first(size)), qp::RxStatus::kOk);
    EXPECT_TRUE(m.received().empty());
    EXPECT_TRUE(to.content() == Octets(16));
    EXPECT_EQ(m.rx().at_boundary(), size == 0);
  }
}

TEST(Positives, AreCaughtByTheCrcWhenAnyOctetIsDamaged) {
  for (const char* id : {"V03-send5-crc", "V06-read-req", "V17-write-zero"}) {
    const Octets sound = vector(id).octets;
    for (size_t at = 0; at < sound.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        SCOPED_TRACE(std::string(id) + " octet " + std::to_string(at) + " bit " +
                     std::to_string(bit));
        Machine m;
        Scene scene(m.memory);
        for (RecvWr& wr : scene.receive_list("")) m.receive(wr);
        Octets damaged = sound;
        damaged[at] = static_cast<uint8_t>(damaged[at] ^ 1 << bit);
        // A length that became larger is found when as much has come.
        damaged.resize(70000);
        ASSERT_EQ(m.feed(damaged), qp::RxStatus::kFault);
        EXPECT_EQ(m.rx().fault().terminate.code, core::TermCode::kMpaCrc);
        EXPECT_FALSE(m.rx().fault().terminate.has_length);
        EXPECT_TRUE(m.received().empty());
        EXPECT_TRUE(scene.receives.content() == Octets(2 * kVectorReceive));
        scene.expect_untouched("");
      }
    }
  }
}

TEST(Positives, WithoutCrcTheFieldIsNotLookedAt) {
  Machine m({.crc = false});
  Buffer to(m.memory, 16);
  m.receive(RecvWr({to.sge()}));
  Octets octets = vector("V30-send5-nocrc").octets;
  octets.back() = 0x5a;
  EXPECT_EQ(m.feed(octets), qp::RxStatus::kOk);
  EXPECT_EQ(m.received().size(), 1u);
}

// Terminates that we send are literally those of the vectors.
Octets terminate_of(Machine& m) {
  qp::Tx::Cause cause;
  cause.send = &m.rx().fault().terminate;
  m.tx().abandon(cause);
  return m.pending();
}

TEST(Terminates, EchoATaggedHeader) {
  Machine m;
  ASSERT_EQ(m.feed(vector("V05a-write-seg1").octets), qp::RxStatus::kFault);
  EXPECT_EQ(to_hex(terminate_of(m)), to_hex(vector("V20-term-ddp-stag").octets));
}

TEST(Terminates, EchoAReadRequest) {
  Machine m;
  ASSERT_EQ(m.feed(vector("V23-rtr-read").octets), qp::RxStatus::kOk);
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V24-rtr-readresp").octets));
  ASSERT_EQ(m.feed(vector("V25-read-req-bad").octets), qp::RxStatus::kFault);
  EXPECT_EQ(to_hex(terminate_of(m)), to_hex(vector("V26-term-rdmap-prot").octets));
}

TEST(Terminates, EchoNothingOfABrokenFpdu) {
  Machine m;
  ASSERT_EQ(m.feed(negative("N17").octets), qp::RxStatus::kFault);
  EXPECT_EQ(to_hex(terminate_of(m)), to_hex(vector("V27-term-llp-crc").octets));
}

}  // namespace

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.id;
}

}  // namespace uiw::test
