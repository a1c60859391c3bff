// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sends with immediate between two uiwarps: who is asked, by what, and what goes before the Send.
#include <gtest/gtest.h>

#include "qp/peer_hints.h"
#include "rdmap/terminate.h"
#include "support/machine.h"
#include "support/window.h"

namespace uiw::test {
namespace {

constexpr auto kSendImm = IBV_WR_SEND_WITH_IMM;
constexpr uint8_t kWrite = 0, kReadRequest = 1, kReadResponse = 2, kSend = 3, kTerminate = 7;
constexpr uint64_t kWeTakeThem = 0x7569776172703032;
using Opcodes = std::vector<uint8_t>;

Opcodes opcodes_of(const std::vector<Octets>& ulpdus) {
  Opcodes out;
  for (const Octets& ulpdu : ulpdus) out.push_back(ulpdu.at(1) & 0xf);
  return out;
}

class Immediates : public testing::Test {
 protected:
  Immediates() { options.immediates = true; }
  void start() {
    from.reset();
    m = std::make_unique<Machine>(options);
    from = std::make_unique<Buffer>(m->memory, pattern(100'000));
  }
  int send(uint64_t id, size_t size = 10, uint32_t immediate = 0x01020304) {
    return m->post(SendWr(kSendImm, {from->sge(0, size)}, id).immediate(immediate));
  }
  std::vector<Octets> go() { return ulpdus_of(m->transmit()); }
  void peer_takes_them() {
    ASSERT_EQ(m->feed(fpdu(tagged(0, 1, kWeTakeThem, {}))), qp::RxStatus::kOk);
  }
  // The peer's answer to the question of ours that `go()` brought.
  void answer(const std::vector<Octets>& ulpdus) {
    ASSERT_EQ(m->feed(response_to(ulpdus.back(), {})), qp::RxStatus::kOk);
  }

  MachineOptions options;
  std::unique_ptr<Machine> m;
  std::unique_ptr<Buffer> from;
};

TEST_F(Immediates, TheFirstSaysThatWeTakeThemAndAsks) {
  start();
  ASSERT_EQ(send(0), 0);
  const std::vector<Octets> sent = go();
  ASSERT_EQ(opcodes_of(sent), (Opcodes{kWrite, kReadRequest}));
  EXPECT_EQ(to_hex(sent[0]), "c140000000017569776172703032");
  EXPECT_EQ(core::load_be32(&sent[1][30]), 0u) << "a Read of no bytes";
  // Nothing else is said, nor sent, until the answer is there.
  ASSERT_EQ(send(1), 0);
  EXPECT_EQ(go(), std::vector<Octets>{});
}

TEST_F(Immediates, APeerThatTakesThemGetsAHintBeforeEachSend) {
  start();
  ASSERT_EQ(send(0, 10, 0xa1b2c3d4), 0);
  const std::vector<Octets> question = go();
  peer_takes_them();
  answer(question);
  ASSERT_EQ(send(1, 0, 0), 0);
  const std::vector<Octets> sent = go();
  ASSERT_EQ(opcodes_of(sent), (Opcodes{kWrite, kSend, kWrite, kSend}));
  EXPECT_EQ(to_hex(sent[0]), "c1400000000175697769a1b2c3d4");
  EXPECT_EQ(sent[1].size(), 18u + 10);
  EXPECT_EQ(to_hex(sent[2]), "c140000000017569776900000000");
  const std::vector<ibv_wc> done = m->sent();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_SEND);
}

TEST_F(Immediates, OneHintStandsBeforeAMessageOfManySegments) {
  start();
  peer_takes_them();
  go();
  ASSERT_EQ(send(0, 10'000), 0);
  const Opcodes sent = opcodes_of(go());
  ASSERT_GT(sent.size(), 3u);
  EXPECT_EQ(sent[0], kWrite);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), kSend), static_cast<long>(sent.size()) - 1);
}

TEST_F(Immediates, WhatIsPostedBehindWaitsInOrder) {
  start();
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from->sge(0, 1)}, 0)), 0);
  ASSERT_EQ(send(1, 2), 0);
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from->sge(0, 3)}, 2)), 0);
  const std::vector<Octets> first = go();
  EXPECT_EQ(opcodes_of(first), (Opcodes{kSend, kWrite, kReadRequest}));
  peer_takes_them();
  answer(first);
  const std::vector<Octets> rest = go();
  ASSERT_EQ(opcodes_of(rest), (Opcodes{kWrite, kSend, kSend}));
  EXPECT_EQ(rest[1].size(), 18u + 2);
  EXPECT_EQ(rest[2].size(), 18u + 3);
}

// siw, an adapter, an older uiwarp or one with the iWARP face: they answer the Read, and that is
// all.
TEST_F(Immediates, APeerThatDoesNotTakeThemIsSentNone) {
  start();
  ASSERT_EQ(send(0), 0);
  ASSERT_EQ(send(1), 0);
  answer(go());
  EXPECT_FALSE(m->tx().fill());
  const qp::TxFault& fault = m->tx().fault();
  EXPECT_TRUE(fault.raised && fault.cause == core::Cause::kNoImmediates);
  m->tx().abandon({.send = &fault.terminate});
  EXPECT_EQ(opcodes_of(ulpdus_of(m->pending())), Opcodes{kTerminate});
  const std::vector<ibv_wc> done = m->sent();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Immediates, APeerThatAnswersNoReadCannotBeAsked) {
  options.ord = 0;
  start();
  ASSERT_EQ(send(0), 0);
  EXPECT_EQ(go(), std::vector<Octets>{});
  EXPECT_TRUE(m->tx().fault().cause == core::Cause::kNoImmediates);
}

// But it may have said so by itself.
TEST_F(Immediates, APeerThatAnswersNoReadMayTakeThem) {
  options.ord = 0;
  start();
  peer_takes_them();
  ASSERT_EQ(send(0), 0);
  EXPECT_EQ(opcodes_of(go()), (Opcodes{kWrite, kSend}));
}

TEST_F(Immediates, TheQuestionWaitsForAFreePlaceAmongTheReads) {
  options.ord = 1;
  start();
  ASSERT_EQ(m->post(SendWr(IBV_WR_RDMA_READ, {from->sge(0, 8)}, 0).to(0x1000, 5)), 0);
  ASSERT_EQ(send(1), 0);
  const std::vector<Octets> read = go();
  EXPECT_EQ(opcodes_of(read), (Opcodes{kReadRequest, kWrite}));
  ASSERT_EQ(m->feed(response_to(read.front(), Octets(8))), qp::RxStatus::kOk);
  EXPECT_EQ(opcodes_of(go()), Opcodes{kReadRequest});
}

// By the time of the answer the peer knows.
TEST_F(Immediates, APeerThatAsksIsToldBeforeItIsAnswered) {
  options.initiator = false;
  start();
  peer_takes_them();
  ASSERT_EQ(m->feed(fpdu(untagged(1, 1, 1, 0, read_request(7, 0, 0, 1, 0)))), qp::RxStatus::kOk);
  const std::vector<Octets> sent = go();
  ASSERT_EQ(opcodes_of(sent), (Opcodes{kWrite, kReadResponse}));
  EXPECT_EQ(to_hex(sent[0]), "c140000000017569776172703032");
  // And we know of it: no question.
  ASSERT_EQ(send(0), 0);
  EXPECT_EQ(opcodes_of(go()), (Opcodes{kWrite, kSend}));
}

// Silence would be a no, and complete the peer's Send with an error instead of a flush.
TEST_F(Immediates, APeerThatAsksIsToldBehindAClose) {
  for (int way = 0; way < 3; ++way) {
    SCOPED_TRACE(way);
    start();
    peer_takes_them();
    ASSERT_EQ(m->feed(fpdu(untagged(1, 1, 1, 0, read_request(7, 0, 0, 1, 0)))), qp::RxStatus::kOk);
    std::vector<Octets> sent;
    if (way == 0) {
      m->tx().stop_starting();
      sent = go();
    } else if (way == 1) {
      ASSERT_TRUE(m->tx().fill_acknowledgements());
      sent = ulpdus_of(m->pending());
    } else {
      m->tx().abandon({});
      sent = ulpdus_of(m->pending());
    }
    EXPECT_EQ(opcodes_of(sent), (Opcodes{kWrite, kReadResponse}));
  }
}

TEST_F(Immediates, WithTheIwarpFaceNothingIsSaidOrUnderstood) {
  options.immediates = false;
  start();
  EXPECT_EQ(send(0), EINVAL);
  peer_takes_them();
  EXPECT_EQ(go(), std::vector<Octets>{});
  Buffer into(m->memory, 100);
  ASSERT_EQ(m->receive(RecvWr({into.sge()}, 0)), 0);
  m->feed(fpdu(tagged(0, 1, 0x7569776900000007, {})));
  m->feed(fpdu(untagged(3, 0, 1, 0, Octets(5))));
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].wc_flags, 0u);
}

TEST_F(Immediates, AHintIsOfTheNextSendAndOfNoOther) {
  start();
  Buffer into(m->memory, 100);
  for (uint64_t id = 0; id < 3; ++id) ASSERT_EQ(m->receive(RecvWr({into.sge()}, id)), 0);
  m->feed(fpdu(untagged(3, 0, 1, 0, Octets(5))));
  m->feed(fpdu(tagged(0, 1, 0x75697769a1b2c3d4, {})));
  m->feed(fpdu(untagged(3, 0, 2, 0, Octets(6))));
  m->feed(fpdu(untagged(3, 0, 3, 0, Octets(7))));
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].wc_flags, 0u);
  EXPECT_EQ(got[1].opcode, IBV_WC_RECV);
  EXPECT_EQ(got[1].wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(got[1].imm_data, __builtin_bswap32(0xa1b2c3d4));
  EXPECT_EQ(got[1].byte_len, 6u);
  EXPECT_EQ(got[2].wc_flags, 0u);
}

// The same bytes are looked at again when the receive is there.
TEST_F(Immediates, AHintWaitsWithItsSendForAReceive) {
  options.wait_for_receive = true;
  start();
  Octets stream = fpdu(tagged(0, 1, 0x7569776900000009, {}));
  const Octets message = fpdu(untagged(3, 0, 1, 0, Octets(5)));
  stream.insert(stream.end(), message.begin(), message.end());
  EXPECT_EQ(m->feed(stream), qp::RxStatus::kWantReceive);
  Buffer into(m->memory, 100);
  ASSERT_EQ(m->receive(RecvWr({into.sge()}, 0)), 0);
  EXPECT_EQ(m->rx().resume(), qp::RxStatus::kOk);
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].imm_data, __builtin_bswap32(9));
}

// No uiwarp does it; a completion has room for one of the two.
TEST_F(Immediates, ASendThatInvalidatesSaysWhatItInvalidated) {
  start();
  Buffer into(m->memory, 100, kAllAccess | mem::kMwBind);
  Window window(m->memory);
  window.bind_now(m->connection->shared.qp_num, into, 0, 64, mem::kRemoteWrite);
  ASSERT_EQ(m->receive(RecvWr({into.sge()}, 0)), 0);
  m->feed(fpdu(tagged(0, 1, 0x7569776900000007, {})));
  m->feed(fpdu(untagged(4, 0, 1, 0, Octets(5), true, window.stag())));
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(got[0].wc_flags, unsigned{IBV_WC_WITH_INV});
  EXPECT_EQ(got[0].invalidated_rkey, window.stag());
}

TEST_F(Immediates, WithACloseNothingIsAskedAnyMore) {
  start();
  ASSERT_EQ(send(0), 0);
  m->tx().stop_starting_now();
  EXPECT_EQ(go(), std::vector<Octets>{});
}

}  // namespace
}  // namespace uiw::test
