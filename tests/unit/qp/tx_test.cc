// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Work requests in, octets out: literal octets against the wire vectors.
#include "qp/tx.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/scene.h"
#include "support/segments.h"

namespace uiw::test {
namespace {

constexpr uint32_t kSmallEmss = 100;  // MULPDU is 128, the least there is

Octets hello() {
  return of_text("hello");
}
Octets counting(size_t size) {
  Octets out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(i);
  return out;
}

TEST(Tx, SendsTheVectorsOfAConversation) {
  Machine m({.emss = kSmallEmss});
  Buffer text(m.memory, hello()), many(m.memory, counting(200)), more(m.memory, counting(150));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 1));
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V03-send5-crc").octets));
  m.post(SendWr(IBV_WR_SEND, {}, 2).flags(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V04-send-se-zero").octets));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {many.sge()}, 3).to(0x1000, 0x11223344));
  EXPECT_EQ(to_hex(m.transmit()),
            to_hex(concat(vector("V05a-write-seg1").octets, vector("V05b-write-seg2").octets)));
  m.post(SendWr(IBV_WR_SEND));
  m.post(SendWr(IBV_WR_SEND));
  m.transmit();  // MSN 3 and 4
  m.post(SendWr(IBV_WR_SEND, {more.sge()}, 5));
  EXPECT_EQ(to_hex(m.transmit()),
            to_hex(concat(vector("V10a-send-seg1").octets, vector("V10b-send-seg2").octets)));
  EXPECT_EQ(m.sent().size(), 6u);
}

TEST(Tx, LeavesTheCrcFieldZeroWithoutCrc) {
  Machine m({.crc = false});
  Buffer text(m.memory, hello());
  m.post(SendWr(IBV_WR_SEND, {text.sge()}));
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V30-send5-nocrc").octets));
}

TEST(Tx, SendsAReadRequestWithACookieAndOffsetZero) {
  Machine m;
  Buffer sink(m.memory, 16);
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x1008, 0x11223344));
  Octets ulpdu = ulpdus_of(m.transmit()).at(0);
  const Octets& expected = vector("V06-read-req").octets;
  // Sink STag and TO differ: 12 octets behind the DDP header.
  const Octets cookie(ulpdu.begin() + 18, ulpdu.begin() + 22);
  EXPECT_NE(to_hex(cookie), "00000000");
  EXPECT_EQ(to_hex({ulpdu.data() + 22, 8}), "0000000000000000");
  std::copy_n(expected.begin() + 2 + 18, 12, ulpdu.begin() + 18);
  EXPECT_EQ(to_hex(fpdu(ulpdu)), to_hex(expected));
  uint32_t stag;
  std::memcpy(&stag, cookie.data(), 4);
  EXPECT_FALSE(m.memory.find(__builtin_bswap32(stag)));
}

TEST(Tx, SendsTheRtrFirst) {
  Machine write({.rtr = mpa::Rtr::kWrite});
  Buffer text(write.memory, hello());
  EXPECT_FALSE(write.tx().rtr_sent());
  write.post(SendWr(IBV_WR_SEND, {text.sge()}));
  EXPECT_EQ(to_hex(write.transmit()),
            to_hex(concat(vector("V17-write-zero").octets, vector("V03-send5-crc").octets)));
  EXPECT_TRUE(write.tx().rtr_sent());
  EXPECT_EQ(write.sent().size(), 1u);  // the RTR completes nothing

  Machine read({.rtr = mpa::Rtr::kRead});
  EXPECT_EQ(to_hex(read.transmit()), to_hex(vector("V23-rtr-read").octets));
  EXPECT_EQ(read.feed(vector("V24-rtr-readresp").octets), qp::RxStatus::kOk);
  EXPECT_TRUE(read.sent().empty());
  Buffer sink(read.memory, 4);
  read.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x1008, 0x11223344));
  EXPECT_EQ(ulpdus_of(read.transmit()).at(0).at(13), 2);  // MSN
}

TEST(Tx, GoesOnWithAMessageThatIsLongerThanOneBatch) {
  Machine m;
  Buffer long_one(m.memory, pattern(3 << 20));
  m.post(SendWr(IBV_WR_SEND, {long_one.sge()}, 9));
  Octets got;
  for (const Octets& ulpdu : ulpdus_of(m.transmit()))
    got.insert(got.end(), ulpdu.begin() + 18, ulpdu.end());
  EXPECT_TRUE(got == long_one.content());
  EXPECT_EQ(m.sent().size(), 1u);
}

std::vector<Octets> segments(ibv_wr_opcode opcode, const Octets& message, size_t mulpdu) {
  return opcode == IBV_WR_RDMA_WRITE ? tagged_segments(0, 0x11223344, 0x1000, message, mulpdu)
                                     : untagged_segments(3, 1, message, mulpdu);
}

TEST(Tx, CutsMessagesAtTheMulpdu) {
  constexpr std::pair<uint32_t, bool> kCases[] = {
      {kSmallEmss, true}, {1460, true}, {8948, true}, {65483, true}, {65483, false}};
  for (const auto& [emss, crc] : kCases) {
    const size_t mulpdu = test::largest_ulpdu(emss, crc);
    for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE}) {
      const size_t room = mulpdu - (opcode == IBV_WR_SEND ? 18 : 14);
      for (size_t size : {size_t{0}, size_t{1}, room - 1, room, room + 1, 2 * room, 2 * room + 1}) {
        SCOPED_TRACE(std::to_string(emss) + (crc ? " " : " no CRC ") + std::to_string(size));
        Machine m({.crc = crc, .emss = emss});
        Buffer from(m.memory, pattern(size));
        m.post(SendWr(opcode, {from.sge()}).to(0x1000, 0x11223344));
        EXPECT_TRUE(ulpdus_of(m.transmit(), crc) == segments(opcode, from.content(), mulpdu));
      }
    }
  }
}

TEST(Tx, FollowsTheEmss) {
  Machine m({.emss = 1460});
  Buffer from(m.memory, pattern(300));
  m.post(SendWr(IBV_WR_SEND, {from.sge()}));
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 1u);
  m.tx().set_emss(kSmallEmss);
  m.post(SendWr(IBV_WR_SEND, {from.sge()}));
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 3u);
}

TEST(Tx, JoinsGatherLists) {
  const Octets whole = pattern(5000);
  for (uint32_t emss : {kSmallEmss, 1460u, 65483u}) {
    Machine m({.emss = emss});
    Buffer one(m.memory, whole);
    // A zero-length SGE may name anything.
    const ibv_sge nothing{0xdead, 0, 0xbeef};
    std::vector<ibv_sge> list = {nothing, one.sge(0, 1),     one.sge(1, 600),     nothing,
                                 nothing, one.sge(601, 513), one.sge(1114, 3885), one.sge(4999, 1),
                                 nothing};
    m.post(SendWr(IBV_WR_SEND, list));
    Octets got;
    for (const Octets& ulpdu : ulpdus_of(m.transmit()))
      got.insert(got.end(), ulpdu.begin() + 18, ulpdu.end());
    EXPECT_TRUE(got == whole);
    EXPECT_EQ(m.sent().at(0).status, IBV_WC_SUCCESS);
  }
}

TEST(Tx, InlineOctetsAreCopiedAtOnceAndNeedNoKey) {
  Machine m;
  Octets text = hello();
  const auto at = reinterpret_cast<uint64_t>(text.data());
  m.post(SendWr(IBV_WR_SEND, {{at, 2, 0}, {at + 2, 3, 1}}).flags(IBV_SEND_INLINE));
  std::fill(text.begin(), text.end(), 0);
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V03-send5-crc").octets));
}

TEST(Tx, InlineMessagesMayTakeSeveralSegments) {
  Machine m({.emss = kSmallEmss});
  Octets text = pattern(512);
  m.post(SendWr(IBV_WR_RDMA_WRITE, {{reinterpret_cast<uint64_t>(text.data()), 512, 0}})
             .to(0x1000, 0x11223344)
             .flags(IBV_SEND_INLINE));
  EXPECT_TRUE(ulpdus_of(m.transmit()) == segments(IBV_WR_RDMA_WRITE, text, 128));
}

TEST(Tx, CompletesInTheOrderPosted) {
  Machine m;
  Buffer sink(m.memory, 5), text(m.memory, hello());
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(0x1000, 1));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 1));
  const std::vector<Octets> out = ulpdus_of(m.transmit());
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(m.sent().empty());  // RFC 5040 5.5(15)
  ASSERT_EQ(m.feed(response_to(out[0], hello())), qp::RxStatus::kOk);
  EXPECT_TRUE(m.rx().take_news());
  m.tx().retire();
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 0u);
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(done[0].byte_len, 5u);
  EXPECT_EQ(done[1].wr_id, 1u);
  EXPECT_EQ(done[1].opcode, IBV_WC_SEND);
}

TEST(Tx, AFenceWaitsForEarlierReads) {
  Machine m;
  Buffer sink(m.memory, 5), text(m.memory, hello());
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x1000, 1));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}).flags(IBV_SEND_SIGNALED | IBV_SEND_FENCE));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}));  // stays behind it
  const std::vector<Octets> out = ulpdus_of(m.transmit());
  ASSERT_EQ(out.size(), 1u);
  ASSERT_EQ(m.feed(response_to(out[0], hello())), qp::RxStatus::kOk);
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 2u);
  EXPECT_EQ(m.sent().size(), 3u);
}

TEST(Tx, KeepsToOrd) {
  Machine m({.ord = 2});
  Buffer sink(m.memory, 5), text(m.memory, hello());
  for (uint64_t id = 0; id < 5; ++id)
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, id).to(0x1000, 1));
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 5));  // later WRs wait in order
  std::deque<Octets> requests;
  const auto transmit = [&] {
    size_t count = 0;
    for (Octets& ulpdu : ulpdus_of(m.transmit())) {
      requests.push_back(std::move(ulpdu));
      ++count;
    }
    return count;
  };
  EXPECT_EQ(transmit(), 2u);
  for (size_t expected : {1u, 1u, 2u}) {  // with the last Read goes the Send
    ASSERT_EQ(m.feed(response_to(requests.front(), hello())), qp::RxStatus::kOk);
    requests.pop_front();
    EXPECT_EQ(transmit(), expected);
  }
}

TEST(Tx, WithoutOrdAReadFailsHere) {
  Machine m({.ord = 0});
  Buffer sink(m.memory, 5);
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 3).to(0x1000, 1));
  EXPECT_TRUE(m.transmit().empty());
  ASSERT_TRUE(m.tx().fault().raised);
  m.tx().abandon({});
  EXPECT_EQ(m.sent().at(0).status, IBV_WC_LOC_QP_OP_ERR);
}

TEST(Tx, UnsignaledRequestsCompleteSilently) {
  Machine m({.depth = 4});
  Buffer text(m.memory, hello());
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, {text.sge()}, 1).flags(0)), 0);
    ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, {text.sge()}, 2)), 0);
    m.transmit();
    const std::vector<ibv_wc> done = m.sent();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].wr_id, 2u);
  }
  ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, {text.sge()}, 3).flags(0), true), 0);  // sq_sig_all
  m.transmit();
  EXPECT_EQ(m.sent().size(), 1u);
}

TEST(Tx, SendsMoreMessagesThanABatchHolds) {
  Machine m({.depth = 1000});
  Buffer text(m.memory, hello()), large(m.memory, pattern(600));
  for (uint64_t id = 0; id < 1000; ++id)
    m.post(SendWr(IBV_WR_SEND, {id % 3 ? text.sge() : large.sge()}, id));
  const std::vector<Octets> out = ulpdus_of(m.transmit());
  ASSERT_EQ(out.size(), 1000u);
  for (uint32_t i = 0; i < 1000; ++i)
    ASSERT_TRUE(out[i] == untagged(3, 0, i + 1, 0, i % 3 ? hello() : large.content())) << i;
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 1000u);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(done[i].wr_id, i);
}

TEST(Tx, ManyGatherElementsFillABatchByPieces) {
  Machine m({.emss = 65483, .depth = 64});
  const Octets whole = pattern(16 * 600);
  Buffer from(m.memory, whole);
  std::vector<ibv_sge> list;
  for (size_t i = 0; i < 16; ++i) list.push_back(from.sge(i * 600, 600));
  for (uint64_t id = 0; id < 64; ++id) ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, list, id)), 0);
  const std::vector<Octets> out = ulpdus_of(m.transmit());
  ASSERT_EQ(out.size(), 64u);
  for (uint32_t i = 0; i < 64; ++i) ASSERT_TRUE(out[i] == untagged(3, 0, i + 1, 0, whole));
}

TEST(Tx, AResponderSendsNothingBeforeTheFirstFpdu) {
  Machine m({.initiator = false});
  Buffer text(m.memory, hello()), to(m.memory, 16);
  m.post(SendWr(IBV_WR_SEND, {text.sge()}));
  EXPECT_TRUE(m.transmit().empty());
  ASSERT_EQ(m.feed(core::Bytes(vector("V17-write-zero").octets).first(19)), qp::RxStatus::kOk);
  EXPECT_FALSE(m.rx().take_news());
  EXPECT_TRUE(m.transmit().empty());
  ASSERT_EQ(m.feed(core::Bytes(vector("V17-write-zero").octets).last(1)), qp::RxStatus::kOk);
  EXPECT_TRUE(m.rx().take_news());
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V03-send5-crc").octets));
}

TEST(Tx, AValidFirstFpduThatWaitsForAReceiveOpensTheResponderToo) {
  Machine m({.initiator = false, .wait_for_receive = true});
  Buffer text(m.memory, hello());
  m.post(SendWr(IBV_WR_SEND, {text.sge()}));
  ASSERT_EQ(m.feed(vector("V03-send5-crc").octets), qp::RxStatus::kWantReceive);
  EXPECT_TRUE(m.rx().take_news());
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V03-send5-crc").octets));
}

TEST(Tx, AnswersAndWorkRequestsTakeTurns) {
  Machine m({.initiator = false, .ird = 8});
  Buffer source(m.memory, pattern(100)), text(m.memory, hello());
  for (uint32_t i = 0; i < 4; ++i) {
    const Octets request = read_request(i + 1, 0, 100, source.stag(), source.start());
    ASSERT_EQ(m.feed(fpdu(untagged(1, 1, i + 1, 0, request))), qp::RxStatus::kOk);
    m.post(SendWr(IBV_WR_SEND, {text.sge()}, i));
  }
  size_t answers_in_first_half = 0, place = 0;
  uint32_t next_answer = 1;
  for (const Octets& ulpdu : ulpdus_of(m.transmit())) {
    if ((ulpdu[1] & 0xf) == 2) {
      EXPECT_EQ(read_be32(&ulpdu[2]), next_answer++);  // in request order
      if (place < 4) ++answers_in_first_half;
    }
    ++place;
  }
  EXPECT_EQ(place, 8u);
  EXPECT_EQ(answers_in_first_half, 2u);
}

TEST(Tx, AnswersCarryTheCrcOfWhatIsSentThoughTheMemoryChanges) {
  Machine m({.initiator = false, .emss = 65483});
  Buffer source(m.memory, pattern(2 << 20));
  const Octets request = read_request(5, 0, 2 << 20, source.stag(), source.start());
  ASSERT_EQ(m.feed(fpdu(untagged(1, 1, 1, 0, request))), qp::RxStatus::kOk);
  Octets stream;
  while (m.tx().fill()) {
    // Between the making of an FPDU and its sending, somebody writes.
    for (size_t i = 0; i < source.size(); i += 1000) source.data()[i] ^= 0xff;
    const Octets batch = m.pending();
    stream.insert(stream.end(), batch.begin(), batch.end());
    m.take(batch.size());
  }
  size_t got = 0;
  for (const Octets& ulpdu : ulpdus_of(stream)) got += ulpdu.size() - 14;  // checks every CRC
  EXPECT_EQ(got, source.size());
}

TEST(Tx, LargeAnswersFromManyRegionsFillABatchByReferences) {
  Machine m({.initiator = false, .crc = false, .ird = 32});
  std::vector<std::unique_ptr<Buffer>> sources;
  for (uint32_t i = 0; i < 20; ++i) {
    sources.push_back(std::make_unique<Buffer>(m.memory, pattern(1000, i)));
    const Octets request = read_request(i + 1, 0, 1000, sources[i]->stag(), sources[i]->start());
    ASSERT_EQ(m.feed(fpdu(untagged(1, 1, i + 1, 0, request), false)), qp::RxStatus::kOk);
  }
  const std::vector<Octets> out = ulpdus_of(m.transmit(), false);
  ASSERT_EQ(out.size(), 20u);
  for (uint32_t i = 0; i < 20; ++i)
    EXPECT_TRUE(out[i] == tagged(2, i + 1, 0, sources[i]->content()));
}

TEST(Tx, ReleasedRegionsCanGoAndTheOctetsStillComeOut) {
  Machine m({.initiator = false, .crc = false, .emss = 65483});
  Buffer source(m.memory, pattern(200000));
  const Octets request = read_request(5, 0, 200000, source.stag(), source.start());
  ASSERT_EQ(m.feed(fpdu(untagged(1, 1, 1, 0, request), false)), qp::RxStatus::kOk);
  ASSERT_TRUE(m.tx().fill());
  const Octets whole = m.pending();
  m.take(70000);
  ASSERT_TRUE(m.tx().release_regions());
  source.deregister();  // would wait for ever if a reference were left
  std::fill_n(source.data(), source.size(), 0);
  const Octets rest = m.pending();
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + 70000, whole.end()));
}

TEST(Tx, AGracefulCloseStartsNothingNew) {
  Machine m;
  Buffer text(m.memory, hello());
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 0));
  EXPECT_FALSE(m.tx().idle());
  m.tx().stop_starting();
  m.post(SendWr(IBV_WR_SEND, {text.sge()}, 1));
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 1u);
  EXPECT_TRUE(m.tx().idle());
  m.tx().abandon({});
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
}

TEST(Tx, AResponderThatMayNotSendYetIsIdleOnceItCloses) {
  Machine m({.initiator = false});
  Buffer text(m.memory, hello());
  m.post(SendWr(IBV_WR_SEND, {text.sge()}));
  m.tx().stop_starting();
  EXPECT_TRUE(m.transmit().empty());
  EXPECT_TRUE(m.tx().idle());
}

// The peer's RTR frame is on its way: what was posted goes out behind it.
TEST(Tx, AResponderThatClosesWaitsForAnAgreedRtr) {
  Machine m({.initiator = false, .rtr = mpa::Rtr::kWrite});
  Buffer text(m.memory, hello());
  m.post(SendWr(IBV_WR_SEND, {text.sge()}));
  m.tx().stop_starting();
  EXPECT_TRUE(m.transmit().empty());
  EXPECT_FALSE(m.tx().idle());
}

}  // namespace
}  // namespace uiw::test
