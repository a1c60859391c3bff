// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// FPDUs of several TCP segments: who sends the capability hint, when, and what follows.
#include "qp/long_fpdus.h"

#include <gtest/gtest.h>

#include "qp/peer_hints.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

constexpr uint32_t kEmss = 1448;               // an Ethernet's, with timestamps
constexpr size_t kSegment = kEmss - 6;         // an FPDU of one segment: its ULPDU
constexpr size_t kLong = 11 * kEmss - 6;       // of as many as 16 KiB hold
constexpr size_t kLongPlain = 44 * kEmss - 6;  // without CRC: of 64,768 octets

// An empty Write to "uiwarp01", without the CRC.
const char kHintOnTheWire[] = "000ec140000000017569776172703031";
Octets capability_hint_ulpdu() {
  return tagged(0, 1, qp::kCapabilityHint, {});
}
Octets capability_hint(bool crc = true) {
  return fpdu(capability_hint_ulpdu(), crc);
}

std::vector<size_t> sizes_of(const std::vector<Octets>& ulpdus) {
  std::vector<size_t> out;
  for (const Octets& ulpdu : ulpdus) out.push_back(ulpdu.size());
  return out;
}
bool is_capability_hint(const Octets& ulpdu) {
  return ulpdu == capability_hint_ulpdu();
}
size_t capability_hints(const std::vector<Octets>& ulpdus) {
  return static_cast<size_t>(std::count_if(ulpdus.begin(), ulpdus.end(), is_capability_hint));
}
// That each but the last has `size`.
void expect_cut_at(size_t size, const std::vector<Octets>& ulpdus) {
  ASSERT_GT(ulpdus.size(), 1u);
  for (size_t i = 0; i + 1 < ulpdus.size(); ++i) EXPECT_EQ(ulpdus[i].size(), size) << i;
  EXPECT_LE(ulpdus.back().size(), size);
}

MachineOptions wanting(MachineOptions options = {}) {
  options.emss = kEmss;
  options.long_fpdus = true;
  return options;
}

TEST(LongFpdus, AreWholeSegmentsAndOneAtLeast) {
  using qp::long_fpdus::several_segments;
  EXPECT_EQ(several_segments(1448, 16384), 11u * 1448);
  EXPECT_EQ(several_segments(1448, 64768), 44u * 1448);
  EXPECT_EQ(several_segments(8948, 16384), 8948u);
  EXPECT_EQ(several_segments(8948, 64768), 7u * 8948);
  EXPECT_EQ(several_segments(65483, 16384), 65483u);
  EXPECT_EQ(several_segments(0, 16384), 0u);
  for (uint32_t emss = 100; emss < 20000; ++emss) {
    const uint32_t several = several_segments(emss, 16384);
    ASSERT_EQ(several % emss, 0u);
    ASSERT_TRUE(several == emss || mpa::mulpdu(several, false) <= 16384) << emss;
  }
}

TEST(LongFpdus, CapabilityHintComesOnceBeforeTheFirstMessageOfSeveralSegments) {
  for (ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_SEND}) {
    Machine m(wanting());
    Buffer from(m.memory, pattern(100000));
    m.post(SendWr(opcode, {from.sge(0, 5)}).to(0, 9));
    EXPECT_EQ(capability_hints(ulpdus_of(m.transmit())), 0u);
    m.post(SendWr(opcode, {from.sge()}).to(0, 9));
    std::vector<Octets> first = ulpdus_of(m.transmit());
    ASSERT_TRUE(is_capability_hint(first.front()));
    EXPECT_EQ(capability_hints(first), 1u);
    first.erase(first.begin());
    expect_cut_at(kSegment, first);  // nothing is known of the peer yet
    m.post(SendWr(opcode, {from.sge()}).to(0, 9));
    EXPECT_EQ(sizes_of(ulpdus_of(m.transmit())), sizes_of(first));  // nor later, nor said again
  }
}

TEST(LongFpdus, CapabilityHintIsAnEmptyWrite) {
  Machine m(wanting({.rtr = mpa::Rtr::kWrite}));
  Buffer from(m.memory, pattern(2000));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0, 9));
  const Octets stream = m.transmit();
  // The RTR stays the first FPDU (RFC 6581 9.2), to the Tagged Offset 0.
  EXPECT_EQ(to_hex({stream.data(), 16}), "000ec140000000010000000000000000");
  EXPECT_EQ(to_hex({stream.data() + 20, 16}), kHintOnTheWire);
}

TEST(LongFpdus, FollowTheCapabilityHintOfThePeer) {
  for (bool crc : {true, false}) {
    Machine m(wanting({.crc = crc}));
    const size_t longest = crc ? kLong : kLongPlain;
    Buffer from(m.memory, pattern(300000));
    ASSERT_EQ(m.feed(capability_hint(crc)), qp::RxStatus::kOk);
    EXPECT_TRUE(m.rx().take_news());  // there is something to answer
    std::vector<Octets> answer = ulpdus_of(m.transmit(), crc);
    ASSERT_EQ(answer.size(), 1u);
    EXPECT_TRUE(is_capability_hint(answer[0]));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0, 9));
    std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), crc);
    if (!crc) ulpdus.erase(ulpdus.begin());  // its length hint
    expect_cut_at(longest, ulpdus);
    // Sent again: neither news nor answered.
    ASSERT_EQ(m.feed(capability_hint(crc)), qp::RxStatus::kOk);
    EXPECT_EQ(m.transmit().size(), 0u);
    // RFC 5044 4.5: MULPDU follows the EMSS, as several of them too.
    m.tx().set_emss(8948);
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0, 9));
    ulpdus = ulpdus_of(m.transmit(), crc);
    if (!crc) ulpdus.erase(ulpdus.begin());
    expect_cut_at((crc ? 1 : 7) * 8948 - 6, ulpdus);
  }
}

TEST(LongFpdus, BeginWithTheNextMessageOnceBothHaveSentTheHint) {
  Machine a(wanting()), b(wanting({.initiator = false}));
  Buffer from(a.memory, pattern(100000)), to(b.memory, 100000);
  a.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(to.start(), to.stag()));
  ASSERT_EQ(b.feed(a.transmit()), qp::RxStatus::kOk);
  ASSERT_EQ(a.feed(b.transmit()), qp::RxStatus::kOk);
  EXPECT_EQ(a.transmit().size(), 0u);  // an answer is not answered
  EXPECT_TRUE(to.content() == from.content());
  a.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(to.start(), to.stag()));
  const Octets stream = a.transmit();
  expect_cut_at(kLong, ulpdus_of(stream));
  ASSERT_EQ(b.feed(stream), qp::RxStatus::kOk);
  EXPECT_TRUE(to.content() == from.content());
}

TEST(LongFpdus, ReadResponsesHaveThemToo) {
  Machine a(wanting()), b(wanting({.initiator = false}));
  Buffer sink(a.memory, 100000), source(b.memory, pattern(100000));
  for (size_t expected : {kSegment, kLong}) {
    a.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(source.start(), source.stag()));
    const Octets request = a.transmit();
    EXPECT_EQ(capability_hints(ulpdus_of(request)), 0u);  // it is the answer that is long
    ASSERT_EQ(b.feed(request), qp::RxStatus::kOk);
    const Octets stream = b.transmit();
    std::vector<Octets> ulpdus = ulpdus_of(stream);
    if (expected == kSegment) {
      ASSERT_TRUE(is_capability_hint(ulpdus.front()));
      ulpdus.erase(ulpdus.begin());
    }
    expect_cut_at(expected, ulpdus);
    ASSERT_EQ(a.feed(stream), qp::RxStatus::kOk);
    a.tx().retire();
    ASSERT_EQ(a.sent().size(), 1u);
    EXPECT_TRUE(sink.content() == source.content());
    ASSERT_EQ(b.feed(a.transmit()), qp::RxStatus::kOk);  // the answer to the hint
  }
}

TEST(LongFpdus, NoHintIsSentOrTakenWhereTheyAreNotWanted) {
  Machine m({.emss = kEmss});
  Buffer from(m.memory, pattern(100000));
  ASSERT_EQ(m.feed(capability_hint()), qp::RxStatus::kOk);
  m.rx().take_news();  // of the first FPDU
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0, 9));
  const std::vector<Octets> ulpdus = ulpdus_of(m.transmit());
  EXPECT_EQ(capability_hints(ulpdus), 0u);
  expect_cut_at(kSegment, ulpdus);
}

TEST(LongFpdus, NoHintIsSentWhereSegmentsAreLong) {
  MachineOptions options = wanting();
  options.emss = 65483;  // loopback
  Machine m(options);
  Buffer from(m.memory, pattern(100000));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0, 9));
  EXPECT_EQ(capability_hints(ulpdus_of(m.transmit())), 0u);
}

TEST(LongFpdus, OtherWritesAreNoCapabilityHint) {
  Machine m(wanting());
  m.feed(fpdu(tagged(0, 1, 0, {})));
  m.rx().take_news();  // of the first FPDU
  ASSERT_EQ(m.feed(fpdu(tagged(0, 1, qp::kCapabilityHint + 1, {}))), qp::RxStatus::kOk);
  EXPECT_FALSE(m.rx().take_news());
  // With an octet in it, it is a Write like any other: no such STag.
  EXPECT_EQ(m.feed(fpdu(tagged(0, 1, qp::kCapabilityHint, pattern(1)))), qp::RxStatus::kFault);
  EXPECT_EQ(m.transmit().size(), 0u);
}

TEST(LongFpdus, AResponderIsSilentUntilItHasHeardThePeer) {
  Machine m(wanting({.initiator = false}));
  Buffer from(m.memory, pattern(100000));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0, 9));
  EXPECT_EQ(m.transmit().size(), 0u);  // RFC 5044 7.1.2(4)
  m.feed(fpdu(tagged(0, 1, 0, {})));
  EXPECT_TRUE(is_capability_hint(ulpdus_of(m.transmit()).front()));
}

TEST(LongFpdus, NoAnswerOnceTheEndHasBegun) {
  Machine m(wanting());
  m.tx().stop_starting();  // the FIN may have gone
  ASSERT_EQ(m.feed(capability_hint()), qp::RxStatus::kOk);
  EXPECT_EQ(m.transmit().size(), 0u);
}

}  // namespace
}  // namespace uiw::test
