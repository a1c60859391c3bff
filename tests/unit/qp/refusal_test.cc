// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A request that is at fault at this end waits for the acknowledgements of those before it, and
// then ends the connection.
#include <gtest/gtest.h>

#include <deque>

#include "support/window.h"

namespace uiw::test {
namespace {

using Statuses = std::vector<ibv_wc_status>;
using Opcodes = std::vector<uint8_t>;

constexpr auto kOk = IBV_WC_SUCCESS, kFlush = IBV_WC_WR_FLUSH_ERR, kProt = IBV_WC_LOC_PROT_ERR;
constexpr uint8_t kWrite = 0, kReadRequest = 1, kSend = 3, kTerminate = 7;

class Refusal : public testing::Test {
 protected:
  void good(ibv_wr_opcode opcode = IBV_WR_SEND) {
    ASSERT_EQ(m.post(SendWr(opcode, {from.sge(0, 10)}).to(0x1000, 0x55)), 0);
  }
  ibv_sge bad_sge(uint32_t size = 10) { return {from.start(), size, from.stag() ^ 1}; }
  void bad(ibv_wr_opcode opcode = IBV_WR_SEND, uint32_t size = 10) {
    ASSERT_EQ(m.post(SendWr(opcode, {bad_sge(size)}).to(0x1000, 0x55)), 0);
  }
  // What goes out now; the requests among it are still to be answered.
  Opcodes go() {
    Opcodes out;
    for (const Octets& ulpdu : ulpdus_of(m.transmit())) {
      out.push_back(ulpdu.at(1) & 0xf);
      if (out.back() == kReadRequest) requests.push_back(ulpdu);
    }
    return out;
  }
  qp::RxStatus answer(size_t size = 0) {
    const Octets request = requests.front();
    requests.pop_front();
    return m.feed(response_to(request, Octets(size)));
  }
  bool is_raised() { return m.tx().fault().raised; }
  Statuses completed() {
    Statuses out;
    for (const ibv_wc& wc : m.sent()) out.push_back(wc.status);
    return out;
  }
  Statuses after(const qp::Tx::Cause& cause) {
    m.tx().abandon(cause);
    return completed();
  }

  Machine m{MachineOptions{.acknowledged = true}};
  Buffer from{m.memory, pattern(10'000)};
  std::deque<Octets> requests;
};

TEST_F(Refusal, ComesBehindTheAcknowledgementOfWhatCameBefore) {
  Buffer sealed(m.memory, 100, mem::kRemoteRead);
  const auto to = [](SendWr wr) { return wr.to(0x1000, 0x55); };
  const std::pair<SendWr, ibv_wc_status> rows[] = {
      {SendWr(IBV_WR_SEND, {bad_sge()}), kProt},
      {SendWr(IBV_WR_SEND, {from.sge(0, 5), bad_sge()}), kProt},
      {to(SendWr(IBV_WR_RDMA_WRITE, {bad_sge()})), kProt},
      {to(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, 5000), bad_sge(5000)})), kProt},  // in segments
      {to(SendWr(IBV_WR_RDMA_WRITE_WITH_IMM, {bad_sge()})), kProt},
      {to(SendWr(IBV_WR_RDMA_READ, {sealed.sge()})), kProt},
      {SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {sealed.sge(0, 8)}).atomic(0x1000, 0x55, 1), kProt},
      {invalidating(IBV_WR_LOCAL_INV, from.stag()), IBV_WC_MW_BIND_ERR},
  };
  for (const auto& [wr, status] : rows) {
    SCOPED_TRACE(wr.wr.opcode);
    Machine other({.acknowledged = true});
    Buffer own(other.memory, pattern(100));
    other.post(SendWr(IBV_WR_RDMA_WRITE, {own.sge()}).to(0x1000, 0x55));
    other.post(SendWr(IBV_WR_SEND, {own.sge()}));
    other.post(wr);
    other.post(SendWr(IBV_WR_SEND, {own.sge()}));
    const std::vector<Octets> sent = ulpdus_of(other.transmit());
    ASSERT_EQ(sent.size(), 3u);
    EXPECT_EQ(sent[2].at(1) & 0xf, kReadRequest);
    EXPECT_FALSE(other.tx().fault().raised);
    EXPECT_TRUE(other.sent().empty());
    ASSERT_EQ(other.feed(response_to(sent[2], {})), qp::RxStatus::kOk);
    EXPECT_FALSE(other.tx().fill());
    ASSERT_TRUE(other.tx().fault().raised);
    const rdmap::Terminate terminate = other.tx().fault().terminate;
    other.tx().abandon({.send = &terminate});
    Statuses got;
    for (const ibv_wc& wc : other.sent()) got.push_back(wc.status);
    EXPECT_EQ(got, (Statuses{kOk, kOk, status, kFlush}));
    EXPECT_EQ(ulpdus_of(other.pending()).at(0).at(1) & 0xf, kTerminate);
  }
}

TEST_F(Refusal, AsksForWhatIsUnsignaled) {
  m.tx().may_leave({.questions = true});
  ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, {from.sge(0, 10)}).flags(0)), 0);
  bad();
  EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
}

TEST_F(Refusal, AsksAgainWhereTheLastQuestionWasEarlier) {
  good();
  EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
  good();
  EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
  good(IBV_WR_RDMA_WRITE);
  bad();
  EXPECT_EQ(go(), Opcodes{kWrite});  // as many are outstanding as may be
  answer();
  EXPECT_EQ(go(), Opcodes{kReadRequest});
  answer();
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_FALSE(is_raised());
  answer();
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_TRUE(is_raised());
  EXPECT_EQ(after({}), (Statuses{kOk, kOk, kOk, kProt}));
}

TEST_F(Refusal, WaitsForReads) {
  good(IBV_WR_RDMA_READ);
  bad();
  EXPECT_EQ(go(), Opcodes{kReadRequest});
  EXPECT_FALSE(is_raised());
  answer(10);
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_TRUE(is_raised());
  EXPECT_EQ(after({}), (Statuses{kOk, kProt}));
}

TEST_F(Refusal, IsThereAtOnceWhereNothingIsToBeAcknowledged) {
  good();
  go();
  answer();
  bad();
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_TRUE(is_raised());
  EXPECT_EQ(after({}), (Statuses{kOk, kProt}));
}

// What is done here needs no answer.
TEST_F(Refusal, IsThereAtOnceBehindWhatIsDoneHere) {
  Buffer region(m.memory, 64, kBindable);
  Window window(m.memory);
  m.post(window.bind(region, 0, 64, mem::kRemoteWrite));
  m.post(invalidating(IBV_WR_LOCAL_INV, window.stag()));
  m.post(invalidating(IBV_WR_LOCAL_INV, window.stag()));
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_TRUE(is_raised());
  EXPECT_EQ(after({}), (Statuses{kOk, kOk, IBV_WC_MW_BIND_ERR}));
}

TEST_F(Refusal, ComesAlsoWhenNothingMoreIsToBeStarted) {
  good();
  bad();
  go();
  m.tx().stop_starting();
  EXPECT_FALSE(m.tx().idle());
  answer();
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_TRUE(is_raised());
}

// It is flushed with the rest, as what was not started otherwise is.
TEST_F(Refusal, IsForgottenWhenThePeerCloses) {
  good();
  bad();
  go();
  m.tx().stop_starting_now();
  answer();
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_FALSE(is_raised());
  EXPECT_FALSE(m.tx().owes_octets());
  EXPECT_EQ(after({}), (Statuses{kOk, kFlush}));
}

TEST_F(Refusal, GivesWayToWhatThePeerRefuses) {
  good(IBV_WR_RDMA_WRITE);
  bad(IBV_WR_RDMA_WRITE);
  const Octets write = ulpdus_of(m.transmit()).at(0);
  rdmap::Terminate refused{.code = core::TermCode::kTaggedInvalidStag};
  refused.has_length = refused.has_ddp_header = true;
  refused.ddp_header_size = 14;
  std::copy_n(write.begin(), 14, refused.ddp_header);
  EXPECT_EQ(after({.received = &refused}), (Statuses{IBV_WC_REM_ACCESS_ERR, kFlush}));
}

// Neither it nor what is behind it will be sent.
TEST_F(Refusal, LetsGoOfMemory) {
  Buffer other(m.memory, pattern(10));
  good();
  bad();
  m.post(SendWr(IBV_WR_SEND, {other.sge()}));
  go();
  EXPECT_TRUE(m.tx().lets_go_of(*m.sends, other.stag(), false));
}

// Found when the answer has come, which acknowledges all before it.
TEST_F(Refusal, OfASinkThatHasGone) {
  Buffer sink(m.memory, 10);
  good(IBV_WR_RDMA_WRITE);
  good();
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x1000, 0x55));
  EXPECT_EQ(go(), (Opcodes{kWrite, kSend, kReadRequest}));
  sink.deregister();
  ASSERT_EQ(answer(10), qp::RxStatus::kFault);
  const qp::RxFault& fault = m.rx().fault();
  EXPECT_EQ(after({.failed_slot = fault.failed_slot, .failed_status = fault.failed_status}),
            (Statuses{kOk, kOk, kProt}));
}

}  // namespace
}  // namespace uiw::test
