// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Small messages, posted many at a time: the stream is what each of them asks for, whatever is
// among them.
#include <gtest/gtest.h>

#include <random>

#include "core/be.h"
#include "qp/tx.h"
#include "support/machine.h"

namespace uiw::test {
namespace {

constexpr uint32_t kRemoteKey = 0x11223344;
constexpr uint64_t kRemoteAddress = 0x1000;

// What a request puts on the wire if it fits one segment.
struct Expected {
  Octets stream;
  uint32_t msn = 1;

  void send(uint8_t opcode, const Octets& payload, bool crc, uint32_t invalidate = 0) {
    stream = concat(std::move(stream),
                    fpdu(untagged(opcode, 0, msn++, 0, payload, true, invalidate), crc));
  }
  void write(const Octets& payload, bool crc) {
    stream = concat(std::move(stream), fpdu(tagged(0, kRemoteKey, kRemoteAddress, payload), crc));
  }
};

TEST(TxSmall, EveryKindAndSizeInAnyOrder) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  for (int round = 0; round < 200; ++round) {
    const bool crc = below(2);
    // With the MULPDU of 1460 or of loopback; what is not small goes the long way, in one segment.
    Machine m({.crc = crc, .emss = below(2) ? 1460u : 65483u, .depth = 256});
    const Octets content = pattern(1300, static_cast<uint32_t>(round));
    Buffer source(m.memory, content);
    Expected expected;
    const uint32_t count = 1 + below(200);
    for (uint32_t id = 0; id < count; ++id) {
      const uint32_t size = below(8) == 0 ? 0 : below(4) == 0 ? below(1300) : below(520);
      const uint32_t first = below(size + 1), at = below(1300 - size + 1);
      const Octets payload(content.begin() + at, content.begin() + at + size);
      std::vector<ibv_sge> sges = {
          source.sge(at, first), {1, 0, 0xbad}, source.sge(at + first, size - first)};
      if (below(2)) sges = {source.sge(at, size)};
      const bool solicited = below(3) == 0, is_inline = size <= 512 && below(3) == 0;
      if (is_inline)
        for (ibv_sge& sge : sges) sge.lkey = 0;
      unsigned flags = IBV_SEND_SIGNALED;
      if (solicited) flags |= IBV_SEND_SOLICITED;
      if (is_inline) flags |= IBV_SEND_INLINE;
      if (below(5) == 0) flags |= IBV_SEND_FENCE;
      switch (below(4)) {
        case 0:
          expected.write(payload, crc);
          ASSERT_EQ(
              m.post(
                  SendWr(IBV_WR_RDMA_WRITE, sges, id).to(kRemoteAddress, kRemoteKey).flags(flags)),
              0);
          break;
        case 1: {
          SendWr send(IBV_WR_SEND_WITH_INV, sges, id);
          send.wr.invalidate_rkey = 0xabcd00 + id;
          expected.send(solicited ? 6 : 4, payload, crc, 0xabcd00 + id);
          ASSERT_EQ(m.post(send.flags(flags)), 0);
          break;
        }
        case 2: {
          const uint32_t immediate = random();
          expected.write(payload, crc);
          Octets body(8);
          core::store_be32(body.data(), immediate);
          expected.send(solicited ? 9 : 8, body, crc);
          ASSERT_EQ(m.post(SendWr(IBV_WR_RDMA_WRITE_WITH_IMM, sges, id)
                               .to(kRemoteAddress, kRemoteKey)
                               .immediate(immediate)
                               .flags(flags)),
                    0);
          break;
        }
        default:
          expected.send(solicited ? 5 : 3, payload, crc);
          ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, sges, id).flags(flags)), 0);
      }
    }
    ASSERT_EQ(to_hex(m.transmit()), to_hex(expected.stream)) << "round " << round;
    const std::vector<ibv_wc> done = m.sent();
    ASSERT_EQ(done.size(), count);
    for (uint32_t id = 0; id < count; ++id) {
      EXPECT_EQ(done[id].wr_id, id);
      EXPECT_EQ(done[id].status, IBV_WC_SUCCESS);
    }
  }
}

// MULPDU is 128, so 110 octets of a Send are the most that fit a segment; and 512, 2048 with CRC,
// are the most that are small.
TEST(TxSmall, WhatIsLargerGoesOnTheLongWay) {
  for (bool crc : {false, true}) {
    for (auto [emss, largest] : {std::pair{100u, 110u}, std::pair{65483u, crc ? 2048u : 512u}}) {
      for (uint32_t size : {largest - 1, largest, largest + 1}) {
        SCOPED_TRACE(size);
        Machine m({.crc = crc, .emss = emss});
        const Octets content = pattern(size);
        Buffer source(m.memory, content);
        for (uint64_t id = 0; id < 3; ++id) m.post(SendWr(IBV_WR_SEND, {source.sge()}, id));
        Octets stream;
        for (uint32_t msn = 1; msn <= 3; ++msn) {
          const size_t first = emss == 100 ? std::min(size, 110u) : size;
          const auto middle = content.begin() + static_cast<std::ptrdiff_t>(first);
          stream =
              concat(std::move(stream),
                     fpdu(untagged(3, 0, msn, 0, {content.begin(), middle}, first == size), crc));
          if (first < size)
            stream = concat(std::move(stream),
                            fpdu(untagged(3, 0, msn, 110, {middle, content.end()}), crc));
        }
        EXPECT_EQ(to_hex(m.transmit()), to_hex(stream));
        EXPECT_EQ(m.sent().size(), 3u);
      }
    }
  }
}

TEST(TxSmall, AFenceEndsTheRun) {
  Machine m;
  Buffer sink(m.memory, 5), text(m.memory, pattern(5));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 0));
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 1).to(kRemoteAddress, 1));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 2));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 3).flags(IBV_SEND_SIGNALED | IBV_SEND_FENCE));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 4));
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 3u);  // until the Read is answered
}

// What is taken of a run by the socket, octet by octet, completes message by message.
TEST(TxSmall, EachCompletesWithItsLastOctet) {
  Machine m({.crc = false});
  Buffer text(m.memory, pattern(64));
  for (uint64_t id = 0; id < 5; ++id) m.post(SendWr(IBV_WR_SEND, {text.sge()}, id));
  ASSERT_TRUE(m.tx().fill());
  const size_t each = fpdu(untagged(3, 0, 1, 0, pattern(64)), false).size();
  ASSERT_EQ(m.pending().size(), 5 * each);
  size_t completed = 0;
  for (size_t taken = 1; taken <= 5 * each; ++taken) {
    m.take(1);
    completed += m.sent().size();
    ASSERT_EQ(completed, taken / each);
  }
}

}  // namespace
}  // namespace uiw::test
