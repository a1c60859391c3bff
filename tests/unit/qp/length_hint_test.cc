// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Before which messages a uiwarp says how long they will be, and that it keeps to it.
#include "qp/peer_hints.h"

#include <gtest/gtest.h>

#include "support/hinted_machine.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

constexpr uint32_t kWriteSegment = 64768 - 14, kSendSegment = 64768 - 18;
constexpr uint32_t kLength = 200000;

Octets length_hint(uint32_t length, uint32_t segment) {
  return tagged(0, segment, qp::length_hint_offset({length, segment}), {});
}
bool is_length_hint(const Octets& ulpdu) {
  return ulpdu.size() == 14 && ulpdu[6] == 0x75 && ulpdu[7] == 0x69 && ulpdu[8] == 0x77 &&
         ulpdu[9] == 0x6d;
}
size_t length_hints(const std::vector<Octets>& ulpdus) {
  return static_cast<size_t>(std::count_if(ulpdus.begin(), ulpdus.end(), is_length_hint));
}

TEST(LengthHint, IsAnEmptyWrite) {
  HintedMachine m;
  Buffer from(m.memory, pattern(kLength));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0x1000, 9));
  const Octets stream = m.transmit();
  // Length, control octets, STag: the segment; Tagged Offset: "uiwm" and the length.
  EXPECT_EQ(to_hex({stream.data(), 20}), "000ec1400000fcf27569776d00030d4000000000");
}

TEST(LengthHint, ComesBeforeEachLongMessageWhichIsCutLikeThat) {
  for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    const uint32_t segment = opcode == IBV_WR_SEND ? kSendSegment : kWriteSegment;
    const size_t header = opcode == IBV_WR_SEND ? 18 : 14;
    HintedMachine m;
    Buffer from(m.memory, pattern(kLength));
    for (int i = 0; i < 3; ++i) m.post(SendWr(opcode, {from.sge()}).to(0x1000, 9));
    std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), false);
    EXPECT_EQ(length_hints(ulpdus), 3u);
    for (int message = 0; message < 3; ++message) {
      ASSERT_GE(ulpdus.size(), 5u);
      EXPECT_EQ(ulpdus[0], length_hint(kLength, segment));
      for (size_t i = 1; i <= 3; ++i) EXPECT_EQ(ulpdus[i].size(), header + segment);
      EXPECT_EQ(ulpdus[4].size(), header + kLength - 3 * segment);
      ulpdus.erase(ulpdus.begin(), ulpdus.begin() + (opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 6 : 5));
    }
    EXPECT_TRUE(ulpdus.empty());
  }
}

// RFC 5044 4.5: the MULPDU may change at any time; what was promised stands.
TEST(LengthHint, IsKeptWhenTheMssChanges) {
  HintedMachine m;
  Buffer from(m.memory, pattern(3 << 20));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0x1000, 9));
  ASSERT_TRUE(m.tx().fill());
  Octets stream = m.pending();
  ASSERT_LT(stream.size(), 3u << 20);  // some of it is still to be built
  m.take(stream.size());
  m.tx().set_emss(1448);
  stream = concat(std::move(stream), m.transmit());
  const std::vector<Octets> ulpdus = ulpdus_of(stream, false);
  ASSERT_TRUE(is_length_hint(ulpdus[0]));
  for (size_t i = 1; i + 1 < ulpdus.size(); ++i) EXPECT_EQ(ulpdus[i].size(), 14 + kWriteSegment);
}

TEST(LengthHint, IsNotForMessagesThatGainNothing) {
  HintedMachine m;
  Buffer from(m.memory, pattern(kLength));
  // One segment, one with little behind it, and what is answered.
  for (size_t size : {100u, kWriteSegment, kWriteSegment + 8000})
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, size)}).to(0x1000, 9));
  m.post(SendWr(IBV_WR_RDMA_READ, {from.sge()}).to(0x1000, 9));
  EXPECT_EQ(length_hints(ulpdus_of(m.transmit(), false)), 0u);
  m.tx().set_emss(1448);  // whose segments several make a long FPDU
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0x1000, 9));
  EXPECT_EQ(length_hints(ulpdus_of(m.transmit(), false)), 1u);
}

// Nothing that has to be verified first is placed directly.
TEST(LengthHint, IsNotForConnectionsWithCrcOrMarkers) {
  HintedMachine crc({.crc = true}), marked({.crc = false, .tx_markers = true});
  for (Machine* m : {&crc, &marked}) {
    Buffer from(m->memory, pattern(kLength));
    m->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0x1000, 9));
    const Octets stream = m->transmit();
    const Octets sign = from_hex("7569776d");
    EXPECT_EQ(std::search(stream.begin(), stream.end(), sign.begin(), sign.end()), stream.end());
  }
}

TEST(LengthHint, IsOnlyForThosePeersThatAreKnown) {
  for (bool wanted : {true, false}) {
    Machine m({.crc = false, .emss = HintedMachine::kEmss, .long_fpdus = wanted});
    Buffer from(m.memory, pattern(kLength));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0x1000, 9));
    const std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), false);
    EXPECT_EQ(length_hints(ulpdus), 0u);
    // Where it would send one, it sends the capability hint.
    EXPECT_EQ(ulpdus[0] == tagged(0, 1, qp::kCapabilityHint, {}), wanted);
  }
}

// A Read of the peer takes its turn, too.
TEST(LengthHint, IsOfTheMessageAlsoWhenAReadIsAnsweredBetween) {
  HintedMachine m;
  Buffer from(m.memory, pattern(kLength));
  ASSERT_EQ(
      m.feed(fpdu(untagged(1, 1, 1, 0, read_request(7, 0, 100, from.stag(), from.start())), false)),
      qp::RxStatus::kOk);
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0x1000, 9));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, 100)}).to(0x1000, 9));
  const std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), false);
  ASSERT_EQ(length_hints(ulpdus), 1u);
  EXPECT_EQ(ulpdus.size(), 7u);
  EXPECT_EQ(std::count_if(ulpdus.begin(), ulpdus.end(),
                          [](const Octets& ulpdu) { return ulpdu.size() == 14 + kWriteSegment; }),
            3);
}

}  // namespace
}  // namespace uiw::test
