// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Send with Invalidate, both ways, and the work requests that change STags and send nothing.
#include "support/window.h"

#include <gtest/gtest.h>

namespace uiw::test {
namespace {

using qp::RxStatus;
using Statuses = std::vector<ibv_wc_status>;

constexpr uint32_t kThisQp = 42, kOtherQp = 43;  // Machine's, another

uint16_t code_of(Machine& m) {
  return static_cast<uint16_t>(m.rx().fault().terminate.code);
}
Octets send_inv(uint32_t stag, uint8_t opcode = 4, uint32_t msn = 1) {
  return fpdu(untagged(opcode, 0, msn, 0, of_text("inv"), true, stag));
}
Statuses statuses(const std::vector<ibv_wc>& completions) {
  Statuses out;
  for (const ibv_wc& wc : completions) out.push_back(wc.status);
  return out;
}

class CountEvents final : public queue::CompletionEvents {
 public:
  void on_completion_event() override { ++events; }
  void on_overflow() override {}
  int events = 0;
};

TEST(SendInvalidate, IsSentAsTheVectorsSay) {
  Machine m;
  Buffer text(m.memory, of_text("inv"));
  m.post(SendWr(IBV_WR_SEND));
  m.post(SendWr(IBV_WR_SEND));
  m.transmit();  // MSN 1 and 2
  m.post(invalidating(IBV_WR_SEND_WITH_INV, 0xaabbcc01, {text.sge()}));
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V08-send-inv").octets));
  m.post(
      invalidating(IBV_WR_SEND_WITH_INV, 0xaabbcc02).flags(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
  EXPECT_EQ(to_hex(m.transmit()), to_hex(vector("V09-send-se-inv").octets));
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(done[2].opcode, IBV_WC_SEND);
  EXPECT_EQ(done[2].byte_len, 3u);
}

// RFC 5041 4.3: every segment of a message carries the same.
TEST(SendInvalidate, NamesTheStagInEverySegment) {
  Machine m({.emss = 100});
  Buffer many(m.memory, pattern(300));
  m.post(invalidating(IBV_WR_SEND_WITH_INV, 0x12345678, {many.sge()}));
  const std::vector<Octets> said = ulpdus_of(m.transmit());
  ASSERT_EQ(said.size(), 3u);
  for (const Octets& ulpdu : said) EXPECT_EQ(to_hex({ulpdu.data() + 2, 4}), "12345678");
  m.post(SendWr(IBV_WR_SEND, {many.sge(0, 1)}));
  EXPECT_EQ(to_hex({ulpdus_of(m.transmit()).at(0).data() + 2, 4}), "00000000");
}

TEST(SendInvalidate, InvalidatesBeforeItCompletes) {
  for (uint8_t opcode : {4, 6}) {
    Machine m;
    CountEvents events;
    auto cq = queue::CompletionQueue::create(16, &events);
    m.connection->shared.recv_cq = cq.get();
    Buffer region(m.memory, 64, kBindable), to(m.memory, 64);
    Window window(m.memory);
    window.bind_now(kThisQp, region, 0, 64, mem::kRemoteWrite);
    m.receive(RecvWr({to.sge()}, 9));
    cq->arm(true);
    ASSERT_EQ(m.feed(fpdu(untagged(opcode, 0, 1, 0, of_text("in"), false, window.stag()))),
              RxStatus::kOk);
    EXPECT_TRUE(window.bound());  // delivered with its last segment (RFC 5040 5.3)
    ASSERT_EQ(m.feed(fpdu(untagged(opcode, 0, 1, 2, of_text("v"), true, window.stag()))),
              RxStatus::kOk);
    EXPECT_FALSE(window.bound());
    EXPECT_EQ(events.events, opcode == 6 ? 1 : 0);
    const std::vector<ibv_wc> got = drain(*cq);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(got[0].opcode, IBV_WC_RECV);
    EXPECT_EQ(got[0].byte_len, 3u);
    EXPECT_EQ(got[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(got[0].invalidated_rkey, window.stag());
    EXPECT_EQ(region.content(), Octets(64));
    EXPECT_EQ(m.feed(fpdu(tagged(0, window.stag(), region.start(), pattern(1)))), RxStatus::kFault);
    EXPECT_EQ(code_of(m), 0x1100);
  }
}

TEST(SendInvalidate, APlainSendSaysNothingOfIt) {
  Machine m;
  Buffer region(m.memory, 64, kBindable);
  Window window(m.memory);
  window.bind_now(kThisQp, region, 0, 64, mem::kRemoteWrite);
  m.receive(RecvWr({}, 1));
  // RFC 5040 4.1: the field is ignored where it has no meaning.
  ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, {}, true, window.stag()))), RxStatus::kOk);
  EXPECT_TRUE(window.bound());
  EXPECT_EQ(m.received().at(0).wc_flags, 0u);
}

// RO-27, RO-28: what is not this stream's alone, and what is not valid.
TEST(SendInvalidate, IsRefusedForEverythingElse) {
  enum Wrong {
    kUnknown,
    kZero,
    kStaleKey,
    kUnbound,
    kTwice,
    kRegion,
    kType1,
    kOtherStream,
    kForeignWindow,
    kForeignRegion
  };
  for (Wrong wrong : {kUnknown, kZero, kStaleKey, kUnbound, kTwice, kRegion, kType1, kOtherStream,
                      kForeignWindow, kForeignRegion}) {
    SCOPED_TRACE(wrong);
    Machine m;
    Buffer region(m.memory, 64, kBindable), foreign(m.memory, 64, kBindable, kOtherPd),
        to(m.memory, 8);
    Window mine(m.memory), unbound(m.memory), shared(m.memory, IBV_MW_TYPE_1), theirs(m.memory);
    Window other_domains(m.memory, IBV_MW_TYPE_2, kOtherPd);
    mine.bind_now(kThisQp, region, 0, 64, mem::kRemoteWrite);
    shared.bind_now(kThisQp, region, 0, 64, mem::kRemoteWrite);
    theirs.bind_now(kOtherQp, region, 0, 64, mem::kRemoteWrite);
    const uint32_t before = other_domains.stag();
    ASSERT_EQ(m.memory.bind({kOtherPd, kThisQp},
                            {before, before, foreign.stag(), 0, foreign.start(), 64}),
              0);
    for (uint64_t id = 0; id < 2; ++id) m.receive(RecvWr({to.sge()}, id));

    uint32_t stag = 0;
    uint16_t code = 0x0209;
    switch (wrong) {
      case kUnknown:
        stag = mine.stag() ^ 0x100;
        break;
      case kZero:
        break;
      case kStaleKey:
        stag = mine.stag() ^ 1;
        break;
      case kUnbound:
        stag = unbound.stag();
        break;
      case kTwice:
        stag = mine.stag();
        ASSERT_EQ(m.feed(send_inv(stag)), RxStatus::kOk);
        ASSERT_EQ(m.received().size(), 1u);
        break;
      case kRegion:
        stag = region.stag();
        break;
      case kType1:
        stag = shared.stag();
        break;
      case kOtherStream:
        stag = theirs.stag(), code = 0x0109;
        break;
      case kForeignWindow:
        stag = other_domains.stag(), code = 0x0109;
        break;
      case kForeignRegion:
        stag = foreign.stag(), code = 0x0109;
        break;
    }
    EXPECT_EQ(m.feed(send_inv(stag, 4, wrong == kTwice ? 2 : 1)), RxStatus::kFault);
    EXPECT_EQ(code_of(m), code);
    const rdmap::Terminate& t = m.rx().fault().terminate;
    EXPECT_TRUE(t.has_length && t.has_ddp_header && !t.has_read_header);
    EXPECT_EQ(m.rx().fault().event, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT_EQ(statuses(m.received()), Statuses{IBV_WC_REM_INV_REQ_ERR});
    EXPECT_EQ(mine.bound(), wrong != kTwice);
    EXPECT_TRUE(shared.bound() && theirs.bound() && other_domains.bound());
    EXPECT_TRUE(m.memory.find(region.stag()) && m.memory.find(foreign.stag()));
  }
}

TEST(Local, BindingsAndInvalidationsSendNothing) {
  Machine m;
  Buffer region(m.memory, 64, kBindable);
  Window window(m.memory);
  const uint32_t unbound = window.stag();
  m.post(window.bind(region, 8, 16, mem::kRemoteRead, 1));
  EXPECT_EQ(to_hex(m.transmit()), "");
  EXPECT_FALSE(m.memory.find(unbound));
  {
    const mem::RegionRef found = m.memory.find(window.stag());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->memory, region.data() + 8);
    EXPECT_EQ(found->length, 16u);
    EXPECT_EQ(found->stream, kThisQp);
  }
  m.post(invalidating(IBV_WR_LOCAL_INV, window.stag(), {}, 2));
  EXPECT_EQ(to_hex(m.transmit()), "");
  EXPECT_FALSE(window.bound());
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(done[1].opcode, IBV_WC_LOCAL_INV);
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(done[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[i].wr_id, i + 1);
    EXPECT_EQ(done[i].byte_len, 0u);
  }
}

// In the order posted, though it does not wait for the socket.
TEST(Local, TheyCompleteInTheirPlace) {
  Machine m;
  Buffer region(m.memory, 64, kBindable), sink(m.memory, 8);
  Window window(m.memory);
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(0x1000, 1));
  m.post(window.bind(region, 0, 64, mem::kRemoteRead, 1));
  m.post(SendWr(IBV_WR_SEND, {}, 2));
  m.post(invalidating(IBV_WR_LOCAL_INV, window.stag(), {}, 3)
             .flags(IBV_SEND_SIGNALED | IBV_SEND_FENCE));
  m.post(SendWr(IBV_WR_SEND, {}, 4));
  const std::vector<Octets> said = ulpdus_of(m.transmit());
  ASSERT_EQ(said.size(), 2u);  // the Read Request and the first Send: the fence waits for the Read
  EXPECT_TRUE(window.bound());
  EXPECT_TRUE(m.sent().empty());
  EXPECT_EQ(m.feed(fpdu(tagged(2, read_be32(&said[0][18]), 0, pattern(8)))), RxStatus::kOk);
  EXPECT_EQ(ulpdus_of(m.transmit()).size(), 1u);
  EXPECT_FALSE(window.bound());
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 5u);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(done[i].wr_id, i);
}

// They are nothing that RFC 5044 7.1.2(4) forbids.
TEST(Local, AResponderMayBindBeforeTheFirstFpdu) {
  Machine m({.initiator = false});
  Buffer region(m.memory, 64, kBindable);
  Window window(m.memory);
  m.post(window.bind(region, 0, 64, mem::kRemoteRead, 1));
  m.post(SendWr(IBV_WR_SEND, {}, 2));
  EXPECT_EQ(to_hex(m.transmit()), "");
  EXPECT_TRUE(window.bound());
  EXPECT_EQ(m.sent().size(), 1u);
}

TEST(Local, UnsignaledOnesCompleteSilently) {
  Machine m;
  Buffer region(m.memory, 64, kBindable);
  Window window(m.memory);
  m.post(window.bind(region, 0, 64, mem::kRemoteRead).flags(0));
  m.post(invalidating(IBV_WR_LOCAL_INV, window.stag()).flags(0));
  m.transmit();
  EXPECT_TRUE(m.sent().empty());
  EXPECT_FALSE(m.sends->has_unretired());
}

TEST(Local, AMistakeEndsTheQueue) {
  enum Wrong { kRights, kRange, kStag, kBoundTwice, kRegion, kUnbound, kOthers };
  for (Wrong wrong : {kRights, kRange, kStag, kBoundTwice, kRegion, kUnbound, kOthers}) {
    SCOPED_TRACE(wrong);
    Machine m;
    Buffer region(m.memory, 64, kBindable), closed(m.memory, 64);
    Window window(m.memory), theirs(m.memory);
    theirs.bind_now(kOtherQp, region, 0, 64, mem::kRemoteRead);
    ibv_mr bad{};
    bad.lkey = region.stag() ^ 1;
    m.post(SendWr(IBV_WR_SEND, {}, 0));
    switch (wrong) {
      case kRights:
        m.post(window.bind(closed, 0, 64, mem::kRemoteRead, 1));
        break;
      case kRange:
        m.post(window.bind(region, 1, 64, mem::kRemoteRead, 1));
        break;
      case kStag:
        m.post(window.bind(&bad, region.start(), 64, mem::kRemoteRead, 1));
        break;
      case kBoundTwice:
        window.bind_now(kThisQp, region, 0, 64, mem::kRemoteRead);
        m.post(window.bind(region, 0, 64, mem::kRemoteRead, 1));
        break;
      case kRegion:
        m.post(invalidating(IBV_WR_LOCAL_INV, region.stag(), {}, 1));
        break;
      case kUnbound:
        m.post(invalidating(IBV_WR_LOCAL_INV, window.stag(), {}, 1));
        break;
      case kOthers:
        m.post(invalidating(IBV_WR_LOCAL_INV, theirs.stag(), {}, 1));
        break;
    }
    m.post(SendWr(IBV_WR_SEND, {}, 2));
    const Octets said = m.transmit();
    EXPECT_EQ(ulpdus_of(said).size(), 1u);
    ASSERT_TRUE(m.tx().fault().raised);
    m.tx().abandon({.send = &m.tx().fault().terminate});
    EXPECT_EQ(statuses(m.sent()),
              (Statuses{IBV_WC_SUCCESS, IBV_WC_MW_BIND_ERR, IBV_WC_WR_FLUSH_ERR}));
    EXPECT_TRUE(m.memory.find(region.stag()));
    EXPECT_TRUE(theirs.bound());
  }
}

TEST(Local, AFlushedBindingDoesNotHappen) {
  Machine m;
  Buffer region(m.memory, 64, kBindable);
  Window window(m.memory);
  m.tx().abandon({});
  m.post(window.bind(region, 0, 64, mem::kRemoteRead, 1));
  m.tx().flush(m.connection->shared);
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_FALSE(window.bound());
}

TEST(Local, PostingTellsWhatCannotBe) {
  Machine m;
  Buffer region(m.memory, 64, kBindable);
  Window one(m.memory, IBV_MW_TYPE_1), two(m.memory);
  ibv_mr mr{};
  mr.lkey = region.stag();
  SendWr wr = two.bind(region, 0, 64, mem::kRemoteRead);
  wr.wr.bind_mw.mw = nullptr;
  EXPECT_EQ(m.post(wr), EINVAL);
  EXPECT_EQ(m.post(two.bind(nullptr, 0, 0, 0, 0)), EINVAL);
  EXPECT_EQ(m.post(one.bind(nullptr, 0, 1, 0, 0)), EINVAL);
  EXPECT_EQ(m.post(two.bind(&mr, region.start(), 1, 0, 0).flags(IBV_SEND_INLINE)), EINVAL);
  EXPECT_EQ(m.post(one.unbind()), 0);
  m.transmit();
  EXPECT_EQ(statuses(m.sent()), Statuses{IBV_WC_SUCCESS});
}

// A reference of a window is never kept for longer than a copy, or an invalidation by the peer
// would make the engine wait for a socket.
TEST(WindowRead, IsCopiedWithAndWithoutCrc) {
  for (bool crc : {false, true}) {
    Machine m({.crc = crc});
    const Octets content = pattern(20000);
    Buffer region(m.memory, content, kBindable);
    Window window(m.memory);
    window.bind_now(kThisQp, region, 0, 20000, mem::kRemoteRead);
    ASSERT_EQ(
        m.feed(fpdu(untagged(1, 1, 1, 0, read_request(7, 0, 20000, window.stag(), region.start())),
                    crc)),
        RxStatus::kOk);
    ASSERT_TRUE(m.tx().fill());
    EXPECT_EQ(m.memory.invalidate({kPd, kThisQp}, window.stag()),
              mem::Invalidation::kDone);  // does not wait
    std::fill_n(region.data(), region.size(), 0);
    Octets got;
    for (const Octets& ulpdu : ulpdus_of(m.pending(), crc))
      got.insert(got.end(), ulpdu.begin() + 14, ulpdu.end());
    ASSERT_FALSE(got.empty());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), content.begin()));  // as it was before
  }
}

}  // namespace
}  // namespace uiw::test
