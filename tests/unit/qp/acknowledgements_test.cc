// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Acknowledged completions: a Send or Write completes by the answer to an empty Read that was sent
// behind it, and an error of the peer's by the request that is to blame.
#include <gtest/gtest.h>

#include <deque>

#include "core/tuning.h"
#include "rdmap/terminate.h"
#include "support/machine.h"

namespace uiw::test {
namespace {

using Ids = std::vector<uint64_t>;
using core::TermCode;

constexpr uint8_t kWrite = 0, kReadRequest = 1, kReadResponse = 2, kSend = 3, kTerminate = 7;

uint8_t opcode_of(const Octets& ulpdu) {
  return ulpdu.at(1) & 0xf;
}
std::vector<uint8_t> opcodes_of(const std::vector<Octets>& ulpdus) {
  std::vector<uint8_t> out;
  for (const Octets& ulpdu : ulpdus) out.push_back(opcode_of(ulpdu));
  return out;
}

class Acknowledged : public testing::Test {
 protected:
  void start(MachineOptions options = {}) {
    options.acknowledged = true;
    options.depth = 256;
    requests.clear();
    from.reset();  // before the memory that it is registered with
    m = std::make_unique<Machine>(options);
    from = std::make_unique<Buffer>(m->memory, pattern(100'000));
  }
  void send(uint64_t id, size_t size = 10) {
    ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from->sge(0, size)}, id)), 0);
  }
  void write(uint64_t id, size_t size = 10, uint32_t rkey = 0x55) {
    ASSERT_EQ(m->post(SendWr(IBV_WR_RDMA_WRITE, {from->sge(0, size)}, id).to(0x1000, rkey)), 0);
  }
  void read(uint64_t id) {
    ASSERT_EQ(m->post(SendWr(IBV_WR_RDMA_READ, {from->sge(0, 8)}, id).to(0x1000, 0x55)), 0);
  }
  // What goes out now; the requests among it are still to be answered.
  std::vector<uint8_t> go() {
    const std::vector<Octets> ulpdus = ulpdus_of(m->transmit());
    for (const Octets& ulpdu : ulpdus) {
      if (opcode_of(ulpdu) == kReadRequest) requests.push_back(ulpdu);
    }
    return opcodes_of(ulpdus);
  }
  void answer(size_t size = 0) {
    ASSERT_FALSE(requests.empty());
    ASSERT_EQ(m->feed(response_to(requests.front(), Octets(size))), qp::RxStatus::kOk);
    requests.pop_front();
    m->tx().retire();
  }
  Ids completed() {
    Ids out;
    for (const ibv_wc& wc : m->sent()) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      out.push_back(wc.wr_id);
    }
    return out;
  }
  // The peer ends the connection, naming `header` as what is to blame.
  std::vector<ibv_wc_status> end(TermCode code, const Octets& header = {}) {
    rdmap::Terminate terminate{.code = code};
    if (!header.empty()) {
      terminate.has_length = terminate.has_ddp_header = true;
      terminate.ddp_header_size = header[0] & 0x80 ? 14 : 18;
      std::copy_n(header.begin(), terminate.ddp_header_size, terminate.ddp_header);
    }
    blamed = m->tx().abandon({.received = &terminate});
    std::vector<ibv_wc_status> out;
    for (const ibv_wc& wc : m->sent()) out.push_back(wc.status);
    return out;
  }

  std::unique_ptr<Machine> m;
  std::unique_ptr<Buffer> from;
  std::deque<Octets> requests;
  bool blamed = false;
};

using Opcodes = std::vector<uint8_t>;

TEST_F(Acknowledged, ASendCompletesByTheAnswerToAnEmptyReadBehindIt) {
  start();
  send(0);
  EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
  const Octets& request = requests.at(0);
  ASSERT_EQ(request.size(), 18u + 28);
  EXPECT_EQ(core::load_be32(&request[6]), 1u);   // queue
  EXPECT_EQ(core::load_be32(&request[10]), 1u);  // MSN
  EXPECT_EQ(core::load_be32(&request[30]), 0u);  // size
  EXPECT_EQ(completed(), Ids{});
  answer();
  EXPECT_EQ(completed(), Ids{0});
  EXPECT_EQ(go(), Opcodes{});
}

TEST_F(Acknowledged, SoDoWritesOfAllSizesWithAndWithoutImmediate) {
  for (const size_t size : {0, 1, 600, 5000, 100'000}) {
    SCOPED_TRACE(size);
    start();
    write(0, size);
    const Opcodes sent = go();
    EXPECT_EQ(sent.front(), kWrite);
    EXPECT_EQ(sent.back(), kReadRequest);
    EXPECT_EQ(requests.size(), 1u);
    EXPECT_EQ(completed(), Ids{});
    answer();
    EXPECT_EQ(completed(), Ids{0});
    m->post(SendWr(IBV_WR_RDMA_WRITE_WITH_IMM, {from->sge(0, size)}, 1).to(0x1000, 0x55));
    go();
    EXPECT_EQ(completed(), Ids{});
    answer();
    EXPECT_EQ(completed(), Ids{1});
  }
}

TEST_F(Acknowledged, OneAnswerIsForAllThatWasSentBefore) {
  start();
  for (uint64_t id = 0; id < 5; ++id) send(id);
  EXPECT_EQ(go(), (Opcodes{kSend, kSend, kSend, kSend, kSend, kReadRequest}));
  answer();
  EXPECT_EQ(completed(), (Ids{0, 1, 2, 3, 4}));
}

TEST_F(Acknowledged, AFewAreOutstandingAndTheLastAnswerAsksForTheRest) {
  start({.ord = 100});
  for (uint64_t id = 0; id < core::tuning::kMostAcknowledgements; ++id) {
    send(id);
    EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
  }
  const uint64_t next = core::tuning::kMostAcknowledgements;
  send(next);
  send(next + 1);
  EXPECT_EQ(go(), (Opcodes{kSend, kSend}));
  answer();
  EXPECT_EQ(completed(), Ids{0});
  EXPECT_EQ(go(), Opcodes{kReadRequest});
  while (!requests.empty()) answer();
  EXPECT_EQ(completed().back(), next + 1);
  EXPECT_EQ(go(), Opcodes{});
}

TEST_F(Acknowledged, NeverMoreThanThePeerAnswers) {
  start({.ord = 1});
  send(0);
  EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
  read(1);
  send(2);
  EXPECT_EQ(go(), Opcodes{});  // the Read waits, and what is behind it
  answer();
  EXPECT_EQ(completed(), Ids{0});
  EXPECT_EQ(go(), (Opcodes{kReadRequest, kSend}));
  answer(8);
  EXPECT_EQ(completed(), Ids{1});
  EXPECT_EQ(go(), Opcodes{kReadRequest});
  answer();
  EXPECT_EQ(completed(), Ids{2});
}

TEST_F(Acknowledged, APeerThatAnswersNoReadsIsNotAsked) {
  start({.ord = 0});
  send(0);
  EXPECT_EQ(go(), Opcodes{kSend});
  EXPECT_EQ(completed(), Ids{0});
}

TEST_F(Acknowledged, AReadOfTheProgramsIsOneToo) {
  start();
  write(0);
  read(1);
  EXPECT_EQ(go(), (Opcodes{kWrite, kReadRequest}));
  EXPECT_EQ(completed(), Ids{});
  answer(8);
  EXPECT_EQ(completed(), (Ids{0, 1}));
  read(2);
  write(3);
  EXPECT_EQ(go(), (Opcodes{kReadRequest, kWrite, kReadRequest}));
  answer(8);
  EXPECT_EQ(completed(), Ids{2});
  answer();
  EXPECT_EQ(completed(), Ids{3});
}

// Linux siw's answer to an empty Read has as many bytes as its last message had.
TEST_F(Acknowledged, BytesOfAnAnswerGoNowhere) {
  for (const bool crc : {true, false}) {
    for (const size_t size : {1, 4, 1000, 20'000}) {
      SCOPED_TRACE(size);
      start({.crc = crc});
      send(0);
      const std::vector<Octets> sent = ulpdus_of(m->transmit(), crc);
      const Octets before = from->content(), all = pattern(size);
      const uint32_t cookie = core::load_be32(&sent.at(1)[18]);
      const core::Bytes octets(all);
      const size_t half = size / 2;
      if (half > 0)
        ASSERT_EQ(m->feed(fpdu(tagged(kReadResponse, cookie, 0, octets.first(half), false), crc)),
                  qp::RxStatus::kOk);
      EXPECT_EQ(completed(), Ids{});
      const Octets rest = fpdu(tagged(kReadResponse, cookie, half, octets.subspan(half)), crc);
      ASSERT_EQ(m->feed(core::Bytes(rest).first(20)), qp::RxStatus::kOk);
      qp::DirectPlacement placement;
      EXPECT_FALSE(m->rx().plan_placement(placement));
      ASSERT_EQ(m->feed(core::Bytes(rest).subspan(20)), qp::RxStatus::kOk);
      m->tx().retire();
      EXPECT_EQ(completed(), Ids{0});
      EXPECT_TRUE(from->content() == before);
    }
  }
}

// What TCP has not taken is not complete, whatever the peer says.
TEST_F(Acknowledged, AnAnswerThatComesTooEarlyCompletesNothing) {
  start();
  send(0, 1000);
  ASSERT_TRUE(m->tx().fill());
  const Octets all = m->pending();
  m->take(100);
  ASSERT_EQ(m->feed(response_to(ulpdus_of(all).at(1), {})), qp::RxStatus::kOk);
  m->tx().retire();
  EXPECT_EQ(completed(), Ids{});
  m->take(all.size() - 100);
  EXPECT_EQ(completed(), Ids{0});
}

TEST_F(Acknowledged, ALongStreamIsAskedForWhereABatchBegins) {
  start({.ord = 4});
  for (uint64_t id = 0; id < 40; ++id) write(id, 100'000);
  ASSERT_TRUE(m->tx().fill());
  while (requests.empty()) {
    const Octets batch = m->pending();
    for (const Octets& ulpdu : ulpdus_of(batch)) {
      if (opcode_of(ulpdu) == kReadRequest) requests.push_back(ulpdu);
    }
    m->take(batch.size());
    ASSERT_TRUE(m->tx().fill());
  }
  EXPECT_EQ(completed(), Ids{});
  answer();
  const Ids some = completed();
  EXPECT_GT(some.size(), 0u);
  EXPECT_LT(some.size(), 20u);
}

// A question behind what makes no completion may be left: nobody waits for its answer.
class Questions : public Acknowledged {
 protected:
  void SetUp() override { start({.ord = 4}); }
  void write_unsignaled() {
    ASSERT_EQ(m->post(SendWr(IBV_WR_RDMA_WRITE, {from->sge(0, 10)}).to(0x1000, 0x55).flags(0)), 0);
  }
  std::vector<uint8_t> go_leaving() {
    m->tx().may_leave({.questions = true});
    return go();
  }
};

TEST_F(Questions, BehindWhatIsUnsignaledAreLeftWhereTheyMayBe) {
  write_unsignaled();
  EXPECT_EQ(go_leaving(), Opcodes{kWrite});
  EXPECT_TRUE(m->tx().left().questions);
  m->tx().may_leave({});
  EXPECT_EQ(go(), Opcodes{kReadRequest});
  EXPECT_FALSE(m->tx().left().any());
}

TEST_F(Questions, GoBehindTheNextThatIsSignaled) {
  for (const size_t size : {10, 5000}) {  // a small message goes another way
    SCOPED_TRACE(size);
    start({.ord = 4});
    write_unsignaled();
    EXPECT_EQ(go_leaving(), Opcodes{kWrite});
    write_unsignaled();
    write(1, size);
    const Opcodes sent = go_leaving();
    EXPECT_EQ(sent.front(), kWrite);
    EXPECT_EQ(sent.back(), kReadRequest);
    EXPECT_FALSE(m->tx().left().any());
    EXPECT_EQ(requests.size(), 1u);
    answer();
    EXPECT_EQ(completed(), Ids{1});
    EXPECT_EQ(m->sends->retired(), 3u);
  }
}

TEST_F(Questions, WaitForWhatIsSignaledOnlyOnce) {
  write(0);
  write_unsignaled();
  EXPECT_EQ(go_leaving(), (Opcodes{kWrite, kWrite, kReadRequest}));
  write_unsignaled();
  EXPECT_EQ(go_leaving(), Opcodes{kWrite});
  EXPECT_TRUE(m->tx().left().questions);
}

TEST_F(Questions, OfAQueueThatSignalsAllAreNotLeft) {
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from->sge(0, 10)}).flags(0), true), 0);
  EXPECT_EQ(go_leaving(), (Opcodes{kSend, kReadRequest}));
}

TEST_F(Acknowledged, OnlyThenItIsIdle) {
  start();
  send(0);
  go();
  m->tx().stop_starting();
  EXPECT_FALSE(m->tx().idle());
  answer();
  EXPECT_TRUE(m->tx().idle());
}

TEST_F(Acknowledged, WhatIsPostedBeforeADisconnectIsStillAskedFor) {
  start();
  for (uint64_t id = 0; id < 3; ++id) {
    send(id);
    go();
  }
  m->tx().stop_starting();
  answer();
  EXPECT_EQ(go(), Opcodes{kReadRequest});
  answer();
  answer();
  EXPECT_EQ(completed(), (Ids{0, 1, 2}));
}

TEST_F(Acknowledged, APeerThatHasClosedIsNotAsked) {
  start();
  for (uint64_t id = 0; id < 3; ++id) {
    send(id);
    go();
  }
  answer();
  m->tx().stop_starting_now();
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_FALSE(m->tx().owes_octets());
}

TEST_F(Acknowledged, ATerminateBlamesTheWriteThatItNames) {
  start();
  write(0);
  write(1, 10, 0x66);
  write(2);
  const std::vector<Octets> sent = ulpdus_of(m->transmit());
  EXPECT_EQ(end(TermCode::kTaggedInvalidStag, sent.at(1)),
            (std::vector{IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_TRUE(blamed);
}

TEST_F(Acknowledged, ATerminateSaysWhatBecameOfASend) {
  const std::pair<TermCode, ibv_wc_status> rows[] = {
      {TermCode::kUntaggedNoBuffer, IBV_WC_RNR_RETRY_EXC_ERR},
      {TermCode::kUntaggedTooLong, IBV_WC_REM_INV_REQ_ERR},
      {TermCode::kStreamCatastrophic, IBV_WC_REM_OP_ERR},
  };
  for (const auto& [code, status] : rows) {
    start();
    for (uint64_t id = 0; id < 3; ++id) send(id);
    const std::vector<Octets> sent = ulpdus_of(m->transmit());
    EXPECT_EQ(end(code, sent.at(1)), (std::vector{IBV_WC_SUCCESS, status, IBV_WC_WR_FLUSH_ERR}));
  }
}

TEST_F(Acknowledged, WhatNobodyAcknowledgedIsFlushedAtTheEnd) {
  start();
  send(0);
  go();
  send(1);
  send(2);
  go();
  answer();
  EXPECT_EQ(completed(), Ids{0});
  EXPECT_EQ(end(TermCode::kMpaCrc), (std::vector{IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_FALSE(blamed);
}

// --- The other side of it, whatever it wants for itself ---

class Answers : public testing::Test {
 protected:
  qp::RxStatus ask(uint32_t msn, uint32_t cookie, uint32_t size = 0, uint64_t at = 0) {
    return m.feed(
        fpdu(untagged(kReadRequest, 1, msn, 0, read_request(cookie, 0, size, target.stag(), at))));
  }
  std::vector<uint8_t> go() { return opcodes_of(ulpdus_of(m.transmit())); }

  Machine m{MachineOptions{.ird = 8}};
  Buffer target{m.memory, pattern(100)};
};

TEST_F(Answers, ComeBeforeEverythingElse) {
  m.post(SendWr(IBV_WR_SEND, {target.sge()}, 0));
  ASSERT_EQ(ask(1, 0xc0), qp::RxStatus::kOk);
  ASSERT_EQ(ask(2, 0xc1), qp::RxStatus::kOk);
  m.post(SendWr(IBV_WR_SEND, {target.sge()}, 1));
  EXPECT_EQ(go(), (Opcodes{kReadResponse, kReadResponse, kSend, kSend}));
}

TEST_F(Answers, OneMayBeLeftUntilSomethingElseGoes) {
  m.tx().may_leave({.answers = true});
  ASSERT_EQ(ask(1, 0xc0), qp::RxStatus::kOk);
  EXPECT_EQ(go(), Opcodes{});
  EXPECT_TRUE(m.tx().left().answers);
  m.post(SendWr(IBV_WR_SEND, {target.sge()}, 0));
  EXPECT_EQ(go(), (Opcodes{kReadResponse, kSend}));
  EXPECT_FALSE(m.tx().left().answers);
}

TEST_F(Answers, OneThatMayBeLeftGoesWhenItMayNotAnyMore) {
  m.tx().may_leave({.answers = true});
  ASSERT_EQ(ask(1, 0xc0), qp::RxStatus::kOk);
  EXPECT_EQ(go(), Opcodes{});
  m.tx().may_leave({});
  EXPECT_EQ(go(), Opcodes{kReadResponse});
}

// The peer has as many outstanding as it may, and can ask for nothing more.
TEST_F(Answers, AreNotLeftWhenThePeerCannotAskAgain) {
  m.tx().may_leave({.answers = true});
  for (uint32_t i = 0; i < core::tuning::kMostAcknowledgements; ++i)
    ASSERT_EQ(ask(1 + i, 0xc0 + i), qp::RxStatus::kOk);
  EXPECT_EQ(go(), Opcodes(core::tuning::kMostAcknowledgements, kReadResponse));
}

TEST_F(Answers, ToAReadOfBytesIsNotLeft) {
  m.tx().may_leave({.reads = true, .answers = true});
  ASSERT_EQ(ask(1, 0xc0, 10, target.start()), qp::RxStatus::kOk);
  EXPECT_EQ(go(), Opcodes{kReadResponse});
}

TEST_F(Answers, ThatWereLeftGoOutAtTheEnd) {
  m.tx().may_leave({.answers = true});
  ASSERT_EQ(ask(1, 0xc0), qp::RxStatus::kOk);
  EXPECT_EQ(go(), Opcodes{});
  ASSERT_TRUE(m.tx().fill_acknowledgements());
  EXPECT_EQ(opcodes_of(ulpdus_of(m.pending())), Opcodes{kReadResponse});
}

TEST_F(Answers, GoOutAtTheEndBeforeATerminate) {
  ASSERT_EQ(ask(1, 0xc0), qp::RxStatus::kOk);
  ASSERT_EQ(ask(2, 0xc1), qp::RxStatus::kOk);
  const rdmap::Terminate terminate{.code = TermCode::kMpaCrc};
  m.tx().abandon({.send = &terminate});
  EXPECT_EQ(opcodes_of(ulpdus_of(m.pending())),
            (Opcodes{kReadResponse, kReadResponse, kTerminate}));
}

TEST_F(Answers, GoOutAloneWhereNothingElseMay) {
  m.post(SendWr(IBV_WR_SEND, {target.sge()}, 0));
  ASSERT_EQ(ask(1, 0xc0), qp::RxStatus::kOk);
  ASSERT_EQ(ask(2, 0xc1, 10, target.start()), qp::RxStatus::kOk);
  ASSERT_EQ(ask(3, 0xc2), qp::RxStatus::kOk);
  ASSERT_TRUE(m.tx().fill_acknowledgements());
  EXPECT_EQ(opcodes_of(ulpdus_of(m.pending())), Opcodes{kReadResponse});
}

TEST_F(Answers, DoNotGoInTheMiddleOfAMessage) {
  Buffer large(m.memory, pattern(8'000'000));
  m.post(SendWr(IBV_WR_SEND, {large.sge()}, 0));
  ASSERT_TRUE(m.tx().fill());
  m.take(m.pending().size());
  ASSERT_EQ(ask(1, 0xc0), qp::RxStatus::kOk);
  EXPECT_FALSE(m.tx().fill_acknowledgements());
  m.tx().abandon({});
  EXPECT_EQ(m.pending().size(), 0u);
}

}  // namespace
}  // namespace uiw::test
