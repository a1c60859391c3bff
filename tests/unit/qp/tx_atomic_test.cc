// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Atomic Requests and Responses, and Write with immediate, as octets: RFC 7306.
#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

constexpr auto kAdd = IBV_WR_ATOMIC_FETCH_AND_ADD, kSwap = IBV_WR_ATOMIC_CMP_AND_SWP;
constexpr auto kWriteImm = IBV_WR_RDMA_WRITE_WITH_IMM;

// The vector with our Request Identifier, which is the third group of four octets behind its FPDU
// header.
Octets with_id(const Octets& request_fpdu, const Octets& ours) {
  Octets ulpdu(request_fpdu.begin() + 2, request_fpdu.end() - 4);
  std::copy_n(ours.begin() + 22, 4, ulpdu.begin() + 22);
  return ulpdu;
}

// AT-02, AT-03, AT-20.
TEST(TxAtomic, SendsTheVectorsAfterARead) {
  Machine m;
  Buffer sink(m.memory, 16);
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x1008, 0x11223344));
  m.post(SendWr(kAdd, {sink.sge(0, 8)}).atomic(0x2000, 0x55667788, 5));
  m.post(SendWr(kSwap, {sink.sge(8, 8)}).atomic(0x2000, 0x55667788, 42, 0x1122334455667788));
  const std::vector<Octets> sent = ulpdus_of(m.transmit());
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(to_hex(sent[1]), to_hex(with_id(vector("V11-fetchadd-req").octets, sent[1])));
  EXPECT_EQ(to_hex(sent[2]), to_hex(with_id(vector("V13-cmpswap-req").octets, sent[2])));
  EXPECT_NE(read_be32(&sent[1][22]), read_be32(&sent[2][22]));
  EXPECT_TRUE(m.sent().empty());  // AT-15: sent is not done
}

// AT-15, AT-21: the answer completes it, and is stored in host order over the SGEs.
TEST(TxAtomic, CompletesWithTheAnswer) {
  Machine m;
  Buffer sink(m.memory, 32);
  m.post(SendWr(kAdd, {sink.sge(0, 3), sink.sge(8, 5)}, 70).atomic(0x2000, 0x55667788, 5));
  m.post(SendWr(kSwap, {sink.sge(16, 16)}, 71).atomic(0x2008, 0x55667788, 1, 2));
  const std::vector<Octets> sent = ulpdus_of(m.transmit());
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0,
                                 atomic_response(read_be32(&sent[0][22]), 0x0102030405060708)))),
            qp::RxStatus::kOk);
  EXPECT_TRUE(m.rx().take_news());
  m.tx().retire();
  std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 70u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(done[0].byte_len, 8u);
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 2, 0, atomic_response(read_be32(&sent[1][22]), 42)))),
            qp::RxStatus::kOk);
  m.tx().retire();
  done = m.sent();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(done[0].byte_len, 8u);
  EXPECT_EQ(to_hex(sink.content()),
            "0807060000000000"
            "0504030201000000"
            "2a00000000000000"
            "0000000000000000");
}

// AT-16: Reads and atomics share ORD.
TEST(TxAtomic, CountsWithReadsAgainstOrd) {
  Machine m({.ord = 2});
  Buffer sink(m.memory, 16);
  for (int i = 0; i < 2; ++i) {
    m.post(SendWr(IBV_WR_RDMA_READ, {}).to(1, 1));
    m.post(SendWr(kAdd, {sink.sge(0, 8)}).atomic(0x2000, 1, 1));
  }
  m.post(SendWr(IBV_WR_SEND));
  const std::vector<Octets> first = ulpdus_of(m.transmit());
  ASSERT_EQ(first.size(), 2u);  // the Send waits behind them
  const uint32_t cookie = read_be32(&first[0][18]);
  ASSERT_EQ(m.feed(fpdu(tagged(2, cookie, 0, {}))), qp::RxStatus::kOk);
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 1u);
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0, atomic_response(read_be32(&first[1][22]), 0)))),
            qp::RxStatus::kOk);
  const std::vector<Octets> last = ulpdus_of(m.transmit());
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0][1], 0x4a);
  EXPECT_EQ(read_be32(&last[0][10]), 4u);  // MSN: one sequence for both
  EXPECT_EQ(last[1][1], 0x43);
}

TEST(TxAtomic, HoldsAFencedRequestUntilTheAnswer) {
  Machine m;
  Buffer sink(m.memory, 16);
  m.post(SendWr(kAdd, {sink.sge(0, 8)}).atomic(0x2000, 1, 1));
  m.post(SendWr(IBV_WR_SEND).flags(IBV_SEND_FENCE));
  const std::vector<Octets> sent = ulpdus_of(m.transmit());
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0, atomic_response(read_be32(&sent[0][22]), 0)))),
            qp::RxStatus::kOk);
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 1u);
}

TEST(TxAtomic, WithoutOrdIsALocalError) {
  Machine m({.ord = 0});
  Buffer sink(m.memory, 8);
  m.post(SendWr(kAdd, {sink.sge()}).atomic(0x2000, 1, 1));
  EXPECT_TRUE(m.transmit().empty());
  EXPECT_TRUE(m.tx().fault().raised);
  m.tx().abandon({});
  ASSERT_EQ(m.sent().at(0).status, IBV_WC_LOC_QP_OP_ERR);
}

TEST(TxAtomic, NeedsASinkThatCanBeWritten) {
  Machine m;
  Buffer sink(m.memory, 8, mem::kRemoteRead);
  m.post(SendWr(kAdd, {sink.sge()}).atomic(0x2000, 1, 1));
  EXPECT_TRUE(m.transmit().empty());
  m.tx().abandon({});
  ASSERT_EQ(m.sent().at(0).status, IBV_WC_LOC_PROT_ERR);
}

// An adapter writes eight octets and asks for no more.
TEST(TxAtomic, OnlyWhatTheAnswerFillsIsChecked) {
  Machine m;
  Buffer sink(m.memory, 8);
  m.post(SendWr(kAdd, {{sink.start(), 16, sink.stag()}, {1, 8, 2}}).atomic(0x2000, 1, 1));
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 1u);
}

// --- responder ---

// AT-06, AT-18: V11 to V14, on a word of this host.
TEST(TxAtomic, AnswersTheVectors) {
  Machine m({.initiator = false});
  Buffer word(m.memory, 8, kAllAccess, kPd, 0x2000);
  const auto request = [&](const char* id) {
    Octets ulpdu(vector(id).octets.begin() + 2, vector(id).octets.end() - 4);
    Octets stag;
    append_be32(stag, word.stag());
    std::copy(stag.begin(), stag.end(), ulpdu.begin() + 26);
    return fpdu(ulpdu);
  };
  word.data()[0] = 37;
  ASSERT_EQ(m.feed(fpdu(untagged(1, 1, 1, 0, read_request(1, 0, 0, 1, 0)))), qp::RxStatus::kOk);
  ASSERT_EQ(m.feed(request("V11-fetchadd-req")), qp::RxStatus::kOk);
  EXPECT_EQ(to_hex(word.content()), "2a00000000000000");
  ASSERT_EQ(m.feed(request("V13-cmpswap-req")), qp::RxStatus::kOk);
  EXPECT_EQ(to_hex(word.content()), "8877665544332211");
  EXPECT_TRUE(m.rx().take_news());
  EXPECT_EQ(
      to_hex(m.transmit()),
      to_hex(concat(concat(vector("V24-rtr-readresp").octets, vector("V12-fetchadd-resp").octets),
                    vector("V14-cmpswap-resp").octets)));
}

// AT-04, AT-05: every operation of the vectors on memory.
TEST(TxAtomic, ComputesTheVectorsInMemory) {
  for (const AtomicValue& v : atomic_values()) {
    Machine m({.initiator = false});
    Buffer word(m.memory, 8);
    std::memcpy(word.data(), &v.original, 8);
    const Octets request =
        atomic_request(v.fetch_add ? 0 : 2, 9, word.stag(), word.start(), v.add_or_swap,
                       v.add_or_swap_mask, v.compare, v.compare_mask);
    ASSERT_EQ(m.feed(fpdu(untagged(0xa, 1, 1, 0, request))), qp::RxStatus::kOk);
    uint64_t result;
    std::memcpy(&result, word.data(), 8);
    EXPECT_EQ(result, v.result);
    EXPECT_EQ(to_hex(m.transmit()),
              to_hex(fpdu(untagged(0xb, 3, 1, 0, atomic_response(9, v.original)))));
  }
}

// AT-20, AT-03: what a FetchAdd does not use, and reserved bits, may be anything.
TEST(TxAtomic, IgnoresWhatIsNotUsed) {
  Machine m({.initiator = false});
  Buffer word(m.memory, 8);
  Octets request = atomic_request(0, 9, word.stag(), word.start(), 7, 0, 0x1234, 0x5678);
  request[0] = request[1] = request[2] = 0xff;
  request[3] = 0xf0;
  ASSERT_EQ(m.feed(fpdu(untagged(0xa, 1, 1, 0, request, true, 0xabcdef01))), qp::RxStatus::kOk);
  EXPECT_EQ(to_hex(word.content()), "0700000000000000");
}

// AT-11: an answer that waits for the socket does not delay execution, and keeps its place.
TEST(TxAtomic, AnswersReadsAndAtomicsInTheirOrder) {
  Machine m({.initiator = false, .ird = 8});
  Buffer word(m.memory, 8), source(m.memory, pattern(3000));
  Octets stream;
  for (uint32_t i = 0; i < 8; ++i) {
    const bool read = i % 3 == 1;
    stream = concat(stream,
                    fpdu(untagged(read ? 1 : 0xa, 1, i + 1, 0,
                                  read ? read_request(i, 0, 3000, source.stag(), source.start())
                                       : atomic_request(0, i, word.stag(), word.start(), 1, 0))));
  }
  ASSERT_EQ(m.feed(stream), qp::RxStatus::kOk);
  EXPECT_EQ(to_hex(word.content()), "0500000000000000");
  uint32_t expected = 0, atomics = 0;
  for (const Octets& ulpdu : ulpdus_of(m.transmit())) {
    if (ulpdu[1] == 0x4b) {
      EXPECT_EQ(to_hex(ulpdu),
                to_hex(untagged(0xb, 3, atomics + 1, 0, atomic_response(expected, atomics))));
      ++atomics;
      ++expected;
    } else {
      EXPECT_EQ(read_be32(&ulpdu[2]), expected);
      expected += (ulpdu[0] & 0x40) != 0;
    }
  }
  EXPECT_EQ(expected, 8u);
  EXPECT_EQ(atomics, 5u);
}

// --- Write with immediate ---

TEST(TxImmediate, FollowsItsWriteOnTheQueueOfTheSends) {
  Machine m({.emss = 100});  // MULPDU 128
  Buffer many(m.memory, pattern(200));
  for (int i = 0; i < 5; ++i) m.post(SendWr(IBV_WR_SEND).flags(0));
  m.transmit();  // MSN 1 to 5
  m.post(SendWr(kWriteImm, {many.sge()}, 9).to(0x1000, 0x11223344).immediate(0xdeadbeef));
  m.post(SendWr(IBV_WR_SEND).flags(0));
  const Octets content = many.content();
  const Octets expected =
      concat(concat(concat(fpdu(tagged(0, 0x11223344, 0x1000, {content.data(), 114}, false)),
                           fpdu(tagged(0, 0x11223344, 0x1000 + 114, {content.data() + 114, 86}))),
                    vector("V15-imm").octets),
             fpdu(untagged(3, 0, 7, 0, {})));
  EXPECT_EQ(to_hex(m.transmit()), to_hex(expected));
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 9u);
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(done[0].byte_len, 200u);
}

TEST(TxImmediate, WithoutOctetsAndWithSolicitedEventAndInline) {
  Machine m;
  m.post(SendWr(kWriteImm)
             .to(0, 1)
             .flags(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)
             .immediate(0x01020304));
  EXPECT_EQ(to_hex(m.transmit()),
            to_hex(concat(vector("V17-write-zero").octets,
                          fpdu(untagged(9, 0, 1, 0, from_hex("0102030400000000"))))));
  Octets text = of_text("hello");
  const ibv_sge sge{reinterpret_cast<uint64_t>(text.data()), 5, 0};
  m.post(SendWr(kWriteImm, {sge})
             .to(0x1000, 7)
             .flags(IBV_SEND_SIGNALED | IBV_SEND_INLINE)
             .immediate(1));
  text[0] = 'x';
  EXPECT_EQ(to_hex(m.transmit()),
            to_hex(concat(fpdu(tagged(0, 7, 0x1000, of_text("hello"))),
                          fpdu(untagged(8, 0, 2, 0, from_hex("0000000100000000"))))));
  EXPECT_EQ(m.sent().size(), 2u);
}

// Done is when TCP has the Immediate Data, not the Write alone.
TEST(TxImmediate, CompletesWithItsLastOctet) {
  Machine m;
  m.post(SendWr(kWriteImm).to(0, 1));
  ASSERT_TRUE(m.tx().fill());
  const size_t whole = m.pending().size();
  ASSERT_EQ(whole, 20u + 32u);
  m.take(whole - 1);
  EXPECT_TRUE(m.sent().empty());
  m.take(1);
  EXPECT_EQ(m.sent().size(), 1u);
}

// --- who is to blame for a Terminate ---

rdmap::Terminate terminate_about(core::TermCode code, const Octets& ulpdu, uint32_t header_size) {
  rdmap::Terminate t;
  t.code = code;
  t.has_length = t.has_ddp_header = true;
  t.ddp_header_size = header_size;
  std::copy_n(ulpdu.begin(), header_size, t.ddp_header);
  return t;
}

TEST(TxAtomic, IsBlamedByItsMsn) {
  for (const auto& [code, status] :
       {std::pair{core::TermCode::kRemoteAccess, IBV_WC_REM_ACCESS_ERR},
        {core::TermCode::kRemoteInvalidStag, IBV_WC_REM_ACCESS_ERR},
        {core::TermCode::kStreamCatastrophic, IBV_WC_REM_INV_REQ_ERR},
        {core::TermCode::kUnexpectedOpcode, IBV_WC_REM_INV_REQ_ERR},
        {core::TermCode::kUntaggedNoBuffer, IBV_WC_REM_INV_REQ_ERR}}) {
    Machine m;
    Buffer sink(m.memory, 8);
    m.post(SendWr(IBV_WR_RDMA_READ, {}, 0).to(1, 1));
    m.post(SendWr(kAdd, {sink.sge()}, 1).atomic(0x2000, 1, 1));
    m.post(SendWr(kAdd, {sink.sge()}, 2).atomic(0x2000, 1, 1));
    const Octets blamed = ulpdus_of(m.transmit()).at(1);
    const rdmap::Terminate t = terminate_about(code, blamed, 18);
    EXPECT_TRUE(m.tx().abandon({.received = &t}));
    const std::vector<ibv_wc> done = m.sent();
    ASSERT_EQ(done.size(), 3u);
    EXPECT_EQ(done[0].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(done[1].status, status);
    EXPECT_EQ(done[1].wr_id, 1u);
    EXPECT_EQ(done[2].status, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST(TxImmediate, IsBlamedForItsWriteAndForItself) {
  for (const bool for_itself : {false, true}) {
    Machine m;
    Buffer from(m.memory, pattern(100));
    m.post(SendWr(IBV_WR_RDMA_READ, {}, 0).to(1, 1));  // holds back completions
    m.post(SendWr(IBV_WR_SEND, {}, 1));
    m.post(SendWr(kWriteImm, {from.sge()}, 2).to(0x1000, 7));
    ASSERT_TRUE(m.tx().fill());
    const std::vector<Octets> sent = ulpdus_of(m.pending());
    ASSERT_EQ(sent.size(), 4u);
    m.take(52 + 24 + 4);  // the Write has begun
    const rdmap::Terminate t = for_itself
                                   ? terminate_about(core::TermCode::kUnexpectedOpcode, sent[3], 18)
                                   : terminate_about(core::TermCode::kTaggedBounds, sent[2], 14);
    EXPECT_TRUE(m.tx().abandon({.received = &t}));
    const std::vector<ibv_wc> done = m.sent();
    ASSERT_EQ(done.size(), 3u);
    EXPECT_EQ(done[2].wr_id, 2u);
    EXPECT_EQ(done[2].status, for_itself ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
  }
}

}  // namespace
}  // namespace uiw::test
