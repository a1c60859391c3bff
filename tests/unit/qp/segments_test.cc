// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Long messages and several of them: how they are cut, numbered and lined up (RFC 5041 4
// and 5.2-5.3).
#include <gtest/gtest.h>

#include <algorithm>

#include "support/scene.h"
#include "support/segments.h"

namespace uiw::test {
namespace {

constexpr uint32_t kSmallEmss = 100;
constexpr size_t kSmallMulpdu = 128;  // the least there is

uint8_t opcode_of(const Octets& ulpdu) {
  return ulpdu[1] & 0xf;
}
bool is_last(const Octets& ulpdu) {
  return ulpdu[0] & 0x40;
}
bool is_tagged(const Octets& ulpdu) {
  return ulpdu[0] & 0x80;
}

void append(std::vector<Octets>& all, std::vector<Octets> more) {
  for (Octets& one : more) all.push_back(std::move(one));
}
// A Read Request of ours, but for the cookie, which is taken from `seen`.
Octets request(uint32_t msn, uint32_t size, uint32_t stag, uint64_t to, const Octets& seen) {
  return untagged(1, 1, msn, 0, read_request(read_be32(&seen[18]), 0, size, stag, to));
}

// RFC 5041 5.2 has a message of 2,048 octets as its example, with a MULPDU of 1,500. RFC 5044 4.5
// makes 1,502 the next that TCP can lead to, so the first segment here holds two octets more.
TEST(Segments, OfTheRfcsExample) {
  Machine m({.emss = 1508});
  Buffer from(m.memory, pattern(2048));
  m.post(SendWr(IBV_WR_SEND, {from.sge()}));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(16384, 0x11223344));
  const std::vector<Octets> out = ulpdus_of(m.transmit());
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(to_hex({out[0].data(), 18}),
            "014300000000"
            "00000000"
            "00000001"
            "00000000");
  EXPECT_EQ(out[0].size(), 18u + 1484);
  EXPECT_EQ(to_hex({out[1].data(), 18}),
            "414300000000"
            "00000000"
            "00000001"
            "000005cc");
  EXPECT_EQ(out[1].size(), 18u + 564);
  EXPECT_EQ(to_hex({out[2].data(), 14}),
            "814011223344"
            "0000000000004000");
  EXPECT_EQ(out[2].size(), 14u + 1488);
  EXPECT_EQ(to_hex({out[3].data(), 14}),
            "c14011223344"
            "00000000000045d0");
  EXPECT_EQ(out[3].size(), 14u + 560);
}

// Out of its lowest 16, 32 and 48 bits, and up to the last offset there is.
TEST(Segments, OfAWriteWhoseOffsetCarriesIntoItsUpperHalf) {
  for (uint64_t to : {0xffffull - 100, 0xffffffffull - 100, 0x1234ffffffffull - 100, ~0ull - 299}) {
    Machine m({.emss = kSmallEmss});
    Buffer from(m.memory, pattern(300));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(to, 0xfedcba98));
    EXPECT_TRUE(ulpdus_of(m.transmit()) ==
                tagged_segments(0, 0xfedcba98, to, from.content(), kSmallMulpdu));
  }
}

TEST(Segments, OfAReadResponse) {
  constexpr std::pair<uint32_t, bool> kCases[] = {
      {kSmallEmss, true}, {1460, true}, {65483, true}, {65483, false}};
  for (const auto& [emss, crc] : kCases) {
    const size_t mulpdu = test::largest_ulpdu(emss, crc), room = mulpdu - 14;
    uint32_t msn = 0;
    Machine m({.initiator = false, .crc = crc, .emss = emss});
    for (size_t size :
         {size_t{0}, size_t{1}, room - 1, room, room + 1, 2 * room, 2 * room + 1, 5 * room + 7}) {
      SCOPED_TRACE(std::to_string(emss) + (crc ? " " : " no CRC ") + std::to_string(size));
      Buffer source(m.memory, pattern(size));
      constexpr uint64_t kSinkTo = 0xfffffff0;  // carries
      const Octets asked = read_request(0xaabbcc01, kSinkTo, static_cast<uint32_t>(size),
                                        source.stag(), source.start());
      ASSERT_EQ(m.feed(fpdu(untagged(1, 1, ++msn, 0, asked), crc)), qp::RxStatus::kOk);
      EXPECT_TRUE(ulpdus_of(m.transmit(), crc) ==
                  tagged_segments(2, 0xaabbcc01, kSinkTo, source.content(), mulpdu));
    }
  }
}

// RFC 5041 4.3, 5040 5.3: what names the message is the same in each of its segments.
TEST(Segments, AllCarryTheOpcodeAndNumberOfTheirMessage) {
  Machine m({.emss = kSmallEmss});
  Buffer from(m.memory, pattern(400));
  m.post(SendWr(IBV_WR_SEND, {}));
  m.post(SendWr(IBV_WR_SEND, {from.sge()}).flags(IBV_SEND_SOLICITED));
  m.post(SendWr(IBV_WR_SEND, {from.sge()}));
  std::vector<Octets> expected = untagged_segments(3, 1, {}, kSmallMulpdu);
  append(expected, untagged_segments(5, 2, from.content(), kSmallMulpdu));
  append(expected, untagged_segments(3, 3, from.content(), kSmallMulpdu));
  EXPECT_TRUE(ulpdus_of(m.transmit()) == expected);
}

// Two queues, two counters; tagged messages have none.
TEST(Segments, EachQueueNumbersItsOwnMessages) {
  Machine m({.ord = 8});
  Buffer octets(m.memory, pattern(8));
  for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND,
                               IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_SEND})
    m.post(SendWr(opcode, {octets.sge()}).to(0x1000, 0x55));
  const std::vector<Octets> out = ulpdus_of(m.transmit());
  ASSERT_EQ(out.size(), 7u);
  const Octets text = octets.content();
  EXPECT_TRUE(out == (std::vector<Octets>{
                         untagged(3, 0, 1, 0, text), request(1, 8, 0x55, 0x1000, out[1]),
                         tagged(0, 0x55, 0x1000, text), untagged(3, 0, 2, 0, text),
                         request(2, 8, 0x55, 0x1000, out[4]), request(3, 8, 0x55, 0x1000, out[5]),
                         untagged(3, 0, 3, 0, text)}));
}

// RFC 5041 5.3: in the order of submission, each whole before the next, however TCP takes them.
TEST(Segments, MessagesGoOutWholeAndInTheOrderPosted) {
  for (size_t piece : {1u, 100u, 137u, 5000u, 1000000u}) {
    SCOPED_TRACE(piece);
    Machine m({.ord = 8, .emss = kSmallEmss, .depth = 64});
    Buffer from(m.memory, pattern(3000)), sink(m.memory, 3000);
    for (uint32_t i = 0; i < 8; ++i) {
      const ibv_sge part = from.sge(i * 100, 700 + i);
      m.post(SendWr(IBV_WR_RDMA_WRITE, {part}).to(0x10000ull * i, 0x100 + i));
      m.post(SendWr(IBV_WR_SEND, {part}).flags(i % 2 ? IBV_SEND_SOLICITED : 0));
      m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x20000ull * i, 0x200 + i));
    }
    Octets stream;
    while (m.tx().fill()) {
      const Octets pending = m.pending();
      const size_t taken = std::min(piece, pending.size());
      stream.insert(stream.end(), pending.begin(),
                    pending.begin() + static_cast<std::ptrdiff_t>(taken));
      m.take(taken);
    }
    const std::vector<Octets> out = ulpdus_of(stream);
    std::vector<Octets> expected;
    for (uint32_t i = 0; i < 8; ++i) {
      const std::span<const uint8_t> part{from.data() + i * 100, 700 + i};
      append(expected, tagged_segments(0, 0x100 + i, 0x10000ull * i, part, kSmallMulpdu));
      append(expected, untagged_segments(i % 2 ? 5 : 3, i + 1, part, kSmallMulpdu));
      ASSERT_LT(expected.size(), out.size());
      expected.push_back(request(i + 1, 3000, 0x200 + i, 0x20000ull * i, out[expected.size()]));
    }
    EXPECT_TRUE(out == expected);
  }
}

// DS-20: a receiver has to stand it; we never do it. Whatever begins is finished first, also when
// the peer's Reads come while a message is on its way.
TEST(Segments, NothingStandsBetweenTheSegmentsOfAMessage) {
  Machine m({.initiator = false, .ird = 16, .emss = kSmallEmss});
  Buffer source(m.memory, pattern(900)), from(m.memory, pattern(1000));
  uint32_t asked = 0;
  const auto ask = [&] {
    const Octets header = read_request(0x300 + asked, 0, 900, source.stag(), source.start());
    ++asked;
    ASSERT_EQ(m.feed(fpdu(untagged(1, 1, asked, 0, header))), qp::RxStatus::kOk);
  };
  ask();
  for (int i = 0; i < 6; ++i) {
    m.post(SendWr(IBV_WR_SEND, {from.sge()}));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0x1000, 0x55));
  }
  Octets stream;
  while (m.tx().fill()) {
    const Octets pending = m.pending();
    const size_t taken = std::min<size_t>(pending.size(), 333);
    stream.insert(stream.end(), pending.begin(),
                  pending.begin() + static_cast<std::ptrdiff_t>(taken));
    m.take(taken);
    if (asked < 10) ask();
  }
  uint64_t next = 0;  // where the message that was begun goes on; 0: none was
  uint8_t opcode = 0;
  uint32_t name = 0;
  std::vector<size_t> messages(16);
  for (const Octets& ulpdu : ulpdus_of(stream)) {
    const uint32_t its_name = read_be32(&ulpdu[is_tagged(ulpdu) ? 2 : 10]);
    uint64_t at = is_tagged(ulpdu) ? read_be64(&ulpdu[6]) : read_be32(&ulpdu[14]);
    if (opcode_of(ulpdu) == 0) at -= 0x1000;
    if (next > 0) {
      ASSERT_EQ(opcode_of(ulpdu), opcode);
      ASSERT_EQ(its_name, name);
    }
    ASSERT_EQ(at, next);
    opcode = opcode_of(ulpdu);
    name = its_name;
    next = at + ulpdu.size() - (is_tagged(ulpdu) ? 14 : 18);
    if (!is_last(ulpdu)) continue;
    ASSERT_EQ(next, opcode == 2 ? 900u : 1000u);
    ++messages[opcode];
    next = 0;
  }
  EXPECT_EQ(next, 0u);
  EXPECT_EQ(messages[0], 6u);
  EXPECT_EQ(messages[2], 10u);
  EXPECT_EQ(messages[3], 6u);
}

}  // namespace
}  // namespace uiw::test
