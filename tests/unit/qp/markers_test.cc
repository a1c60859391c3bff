// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Both machines with MPA markers (RFC 5044 4.3): what is sent has them wherever they belong, what
// is received is checked and rid of them.
#include <gtest/gtest.h>

#include <random>

#include "support/marked_stream.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

uint16_t code_of(Machine& m) {
  return static_cast<uint16_t>(m.rx().fault().terminate.code);
}

// --- sending ---

TEST(TxMarkers, TheFirstOctetsAreAMarker) {
  Machine m({.tx_markers = true});
  Buffer text(m.memory, of_text("hello"));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}));
  const Octets sent = m.transmit();
  EXPECT_EQ(to_hex({sent.data(), 8}), "0000000000174143");
  EXPECT_EQ(to_hex(sent), to_hex(MarkedStream().next(untagged(3, 0, 1, 0, of_text("hello")))));
}

// The vectors' stream: markers before the first FPDU, inside, between two, between pad and CRC.
TEST(TxMarkers, SendsTheVectors) {
  Machine m({.tx_markers = true});
  Buffer zeros(m.memory, Octets(1000));
  for (const auto& [id, payload] :
       {std::pair{"V36-M1", 464u}, {"V36-M2", 24u}, {"V36-M3", 456u}, {"V36-M4", 487u}}) {
    m.post(SendWr(IBV_WR_SEND, {zeros.sge(0, payload)}));
    EXPECT_EQ(to_hex(m.transmit()), to_hex(vector(id).octets)) << id;
  }
  m.post(SendWr(IBV_WR_RDMA_WRITE, {zeros.sge()}).to(0x1000, 0x11223344));
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V36-M5").octets));
}

// Everything a machine sends, in batches of any size, with any EMSS, taken in any pieces.
TEST(TxMarkers, EverySizeInEveryPiece) {
  for (uint32_t emss : {100u, 576u, 1460u, 8948u, 65483u}) {
    for (bool crc : {true, false}) {
      for (size_t piece : {size_t{1} << 20, size_t{4096}, size_t{1000}, size_t{13}}) {
        SCOPED_TRACE(testing::Message() << emss << ' ' << crc << ' ' << piece);
        Machine m({.crc = crc, .tx_markers = true, .rtr = mpa::Rtr::kWrite, .emss = emss});
        const Octets content = pattern(140000);
        Buffer from(m.memory, content);
        Octets expected_payload, inline_data = pattern(200, 3);
        m.post(SendWr(IBV_WR_RDMA_WRITE,
                      {from.sge(0, 70000), from.sge(70001, 333), from.sge(90000, 50000)}, 0)
                   .to(0, 9));
        m.post(SendWr(IBV_WR_SEND, {{reinterpret_cast<uint64_t>(inline_data.data()), 200, 0}}, 1)
                   .flags(IBV_SEND_SIGNALED | IBV_SEND_INLINE));
        for (uint64_t id = 2; id < 40; ++id)
          m.post(SendWr(IBV_WR_SEND, {from.sge(id, id * 11)}, id));
        Octets stream;
        while (m.tx().fill()) {
          const Octets pending = m.pending();
          const size_t taken = std::min(piece, pending.size());
          stream.insert(stream.end(), pending.begin(),
                        pending.begin() + static_cast<std::ptrdiff_t>(taken));
          m.take(taken);
        }
        EXPECT_EQ(m.sent().size(), 40u);
        const std::vector<Octets> ulpdus = marked_ulpdus_of(stream, crc);
        Octets written, last;
        for (const Octets& ulpdu : ulpdus) {
          ASSERT_LE(ulpdu.size(), mpa::mulpdu(emss, true));
          if ((ulpdu[1] & 0xf) == 0) written.insert(written.end(), ulpdu.begin() + 14, ulpdu.end());
          if ((ulpdu[1] & 0xf) == 3 && read_be32(&ulpdu[10]) == 39)
            last.insert(last.end(), ulpdu.begin() + 18, ulpdu.end());
        }
        Octets wanted(content.begin(), content.begin() + 70000);
        wanted.insert(wanted.end(), content.begin() + 70001, content.begin() + 70334);
        wanted.insert(wanted.end(), content.begin() + 90000, content.end());
        EXPECT_TRUE(written == wanted);
        EXPECT_TRUE(last == Octets(content.begin() + 39, content.begin() + 39 + 39 * 11));
      }
    }
  }
}

TEST(TxMarkers, ReadResponses) {
  Machine m({.initiator = false, .tx_markers = true});
  Buffer source(m.memory, pattern(100000));
  ASSERT_EQ(
      m.feed(fpdu(untagged(1, 1, 1, 0, read_request(9, 0, 100000, source.stag(), source.start())))),
      RxStatus::kOk);
  Octets got;
  for (const Octets& ulpdu : marked_ulpdus_of(m.transmit()))
    got.insert(got.end(), ulpdu.begin() + 14, ulpdu.end());
  EXPECT_TRUE(got == source.content());
}

// A batch of which some FPDUs are forgotten: the Terminate has its markers where the stream really
// is.
TEST(TxMarkers, ATerminateFollowsAWholeFpduWhereverTheStreamIs) {
  const rdmap::Terminate terminate{.code = core::TermCode::kMpaCrc};
  const Octets expected = untagged(7, 2, 1, 0, from_hex("20020000"));
  for (size_t taken = 0; taken < 6000; taken += 37) {
    Machine m({.tx_markers = true});
    Buffer from(m.memory, pattern(10000));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 0).to(0, 9));
    ASSERT_TRUE(m.tx().fill());
    const Octets pending = m.pending();
    Octets stream(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(taken));
    if (taken > 0) m.tx().consume(taken);
    m.tx().abandon({.send = &terminate});
    stream = concat(stream, m.pending());
    const std::vector<Octets> ulpdus = marked_ulpdus_of(stream);
    ASSERT_FALSE(ulpdus.empty()) << taken;
    EXPECT_EQ(to_hex(ulpdus.back()), to_hex(expected));
  }
}

// --- receiving ---

struct Conversation {
  explicit Conversation(Machine& m)
      : target(m.memory, 3000), to(m.memory, 3000), source(m.memory, pattern(64, 5)) {
    for (uint64_t id = 0; id < 3; ++id) m.receive(RecvWr({to.sge(id * 1000, 1000)}, id));
    MarkedStream stream;
    const auto add = [&](const Octets& ulpdu) { octets = concat(octets, stream.next(ulpdu)); };
    add(untagged(3, 0, 1, 0, pattern(470, 1)));
    add(tagged(0, target.stag(), target.start(), pattern(1200, 2), false));
    add(untagged(3, 0, 2, 0, pattern(3, 3)));
    add(tagged(0, target.stag(), target.start() + 1200, pattern(1800, 4)));
    add(untagged(1, 1, 1, 0, read_request(9, 0, 64, source.stag(), source.start())));
    add(untagged(3, 0, 3, 0, pattern(1000, 6)));
  }
  void expect_delivered(Machine& m) {
    const std::vector<ibv_wc> got = m.received();
    ASSERT_EQ(got.size(), 3u);
    const struct { uint32_t size, seed; } sends[] = {{470, 1}, {3, 3}, {1000, 6}};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].status, IBV_WC_SUCCESS);
      EXPECT_EQ(got[i].byte_len, sends[i].size);
      const Octets expected = pattern(sends[i].size, sends[i].seed);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.data() + i * 1000));
    }
    EXPECT_TRUE(target.content() == concat(pattern(1200, 2), pattern(1800, 4)));
    EXPECT_TRUE(m.rx().at_boundary());
    Octets answer;
    for (const Octets& ulpdu : ulpdus_of(m.transmit()))
      answer.insert(answer.end(), ulpdu.begin() + 14, ulpdu.end());
    EXPECT_TRUE(answer == pattern(64, 5));
  }
  Buffer target, to, source;
  Octets octets;
};

TEST(RxMarkers, EveryCutOfAStream) {
  for (size_t piece = 1; piece < 2000; piece += piece < 20 ? 1 : 61) {
    SCOPED_TRACE(piece);
    Machine m({.initiator = false, .rx_markers = true});
    Conversation conversation(m);
    const Octets& stream = conversation.octets;
    for (size_t at = 0; at < stream.size(); at += piece)
      ASSERT_EQ(m.feed({stream.data() + at, std::min(piece, stream.size() - at)}), RxStatus::kOk)
          << at;
    conversation.expect_delivered(m);
  }
}

TEST(RxMarkers, TheVectors) {
  Machine m({.initiator = false, .rx_markers = true});
  Buffer to(m.memory, 1000), target(m.memory, 1000, kAllAccess, kPd, 0x1000);
  for (uint64_t id = 0; id < 4; ++id) m.receive(RecvWr({to.sge()}, id));
  for (const char* id : {"V36-M1", "V36-M2", "V36-M3", "V36-M4"}) {
    ASSERT_EQ(m.feed(vector(id).octets), RxStatus::kOk) << id;
    EXPECT_EQ(m.received().size(), 1u) << id;
  }
  // The Write names an STag that is not ours: the echo shows that it was understood.
  ASSERT_EQ(m.feed(vector("V36-M5").octets), RxStatus::kFault);
  EXPECT_EQ(code_of(m), 0x1100);
  EXPECT_EQ(to_hex({m.rx().fault().terminate.ddp_header, 14}),
            "c1401122334400000000"
            "00001000");
}

// MF-07 with markers: any octet that changes is noticed, and nothing of its FPDU is delivered.
TEST(RxMarkers, AnyChangedOctetIsNoticed) {
  const Octets good = MarkedStream().next(untagged(3, 0, 1, 0, pattern(600)));
  for (size_t at = 0; at < good.size(); ++at) {
    Machine m({.rx_markers = true});
    Buffer to(m.memory, 1000);
    m.receive(RecvWr({to.sge()}, 1));
    Octets changed = good;
    changed[at] ^= 0x10;
    // A length that grew asks for more.
    changed = concat(changed, Octets(70000));
    ASSERT_EQ(m.feed(changed), RxStatus::kFault) << at;
    EXPECT_EQ(code_of(m), 0x2002) << at;
    EXPECT_TRUE(m.received().empty());
    EXPECT_TRUE(to.content() == Octets(1000)) << at;
  }
}

// MF-22: a pointer that disagrees, with or without CRC; MF-21: its low bits do not count.
TEST(RxMarkers, APointerThatDisagrees) {
  for (bool crc : {true, false}) {
    for (uint16_t error : {4, 512, 0xfffc, 3}) {
      Machine m({.crc = crc, .rx_markers = true});
      Buffer to(m.memory, 1000);
      m.receive(RecvWr({to.sge()}, 1));
      const RxStatus status =
          m.feed(MarkedStream().next(untagged(3, 0, 1, 0, pattern(600)), crc, error));
      if (error == 3) {
        ASSERT_EQ(status, RxStatus::kOk);
        EXPECT_EQ(m.received().at(0).byte_len, 600u);
        continue;
      }
      ASSERT_EQ(status, RxStatus::kFault) << error;
      const rdmap::Terminate& t = m.rx().fault().terminate;
      EXPECT_EQ(code_of(m), 0x2003);
      EXPECT_FALSE(t.has_length || t.has_ddp_header || t.has_read_header);
      EXPECT_TRUE(m.received().empty());
      EXPECT_TRUE(to.content() == Octets(1000));
    }
  }
}

TEST(RxMarkers, WaitsForAReceiveAndLosesNothing) {
  for (size_t piece : {1u, 100u, 5000u}) {
    Machine m({.rx_markers = true, .wait_for_receive = true});
    Buffer to(m.memory, 800);
    MarkedStream reference;
    Octets stream;
    for (uint32_t msn = 1; msn <= 4; ++msn)
      stream = concat(stream, reference.next(untagged(3, 0, msn, 0, pattern(msn * 190, msn))));
    RxStatus status = RxStatus::kOk;
    for (size_t at = 0; at < stream.size(); at += piece)
      status = m.feed({stream.data() + at, std::min(piece, stream.size() - at)});
    EXPECT_EQ(status, RxStatus::kWantReceive);
    for (uint32_t msn = 1; msn <= 4; ++msn) {
      m.receive(RecvWr({to.sge()}, msn));
      EXPECT_EQ(m.rx().resume(), msn == 4 ? RxStatus::kOk : RxStatus::kWantReceive);
      ASSERT_EQ(m.received().size(), 1u);
      const Octets expected = pattern(msn * 190, msn);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.data()));
    }
    EXPECT_TRUE(m.rx().at_boundary());
  }
}

// Lengths, pointers and contents of all kinds, with and without a CRC to guard them, in pieces of
// all sizes: what is placed is placed where it may be, and nothing else is touched.
TEST(RxMarkers, NothingAStrangerSaysDoesHarm) {
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool crc = random() % 3 == 0;
    Machine m({.initiator = false, .crc = crc, .rx_markers = true});
    Buffer target(m.memory, 600), other(m.memory, Octets(600), mem::kLocalWrite), to(m.memory, 600);
    for (uint64_t id = 0; id < 4; ++id) m.receive(RecvWr({to.sge()}, id));
    MarkedStream reference;
    Octets stream;
    for (uint32_t msn = 1; msn <= 8; ++msn) {
      const size_t size = random() % 700;
      const Octets payload = pattern(size, seed);
      const Octets ulpdu = random() % 2 ? untagged(3, 0, msn, 0, payload)
                                        : tagged(0, target.stag(), target.start(), payload);
      stream = concat(
          std::move(stream),
          reference.next(ulpdu, crc, random() % 8 == 0 ? static_cast<uint16_t>(random()) : 0));
    }
    for (uint32_t damaged = random() % 4; damaged > 0; --damaged)
      stream[random() % std::min<size_t>(stream.size(), 1500)] = static_cast<uint8_t>(random());
    RxStatus status = RxStatus::kOk;
    for (size_t at = 0; at < stream.size() && status == RxStatus::kOk;) {
      const size_t piece =
          std::min<size_t>(1 + random() % (1u << random() % 12), stream.size() - at);
      // Of its own, so that a look beyond it is noticed.
      const Octets octets(stream.begin() + static_cast<std::ptrdiff_t>(at),
                          stream.begin() + static_cast<std::ptrdiff_t>(at + piece));
      status = m.feed(octets);
      at += piece;
    }
    EXPECT_NE(status, RxStatus::kWantReceive);
    EXPECT_TRUE(other.content() == Octets(600));
  }
}

TEST(RxMarkers, TheLargestUlpduThereIs) {
  Machine m({.rx_markers = true});
  const Octets payload = pattern(65535 - 18);
  Buffer to(m.memory, payload.size());
  m.receive(RecvWr({to.sge()}, 1));
  MarkedStream stream(0);
  ASSERT_EQ(m.feed(stream.next(untagged(3, 0, 1, 0, payload))), RxStatus::kOk);
  EXPECT_EQ(m.received().at(0).byte_len, payload.size());
  EXPECT_TRUE(to.content() == payload);
}

}  // namespace
}  // namespace uiw::test
