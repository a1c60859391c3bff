// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How transmission ends: partial sends, cuts at every octet, Terminates, who is blamed.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/scene.h"

namespace uiw::test {
namespace {

constexpr uint32_t kSmallEmss = 100;

// Posts one of each kind; what comes out is about 3,000 octets in 27 FPDUs.
struct Mixture {
  explicit Mixture(bool crc = true)
      : m({.initiator = false, .crc = crc, .emss = kSmallEmss}),
        from(m.memory, pattern(1500)),
        sink(m.memory, 100) {
    Octets request = read_request(9, 0, 700, from.stag(), from.start());
    EXPECT_EQ(m.feed(fpdu(untagged(1, 1, 1, 0, request), crc)), qp::RxStatus::kOk);
    m.post(SendWr(IBV_WR_SEND, {from.sge(0, 300)}, 0));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(300, 900), from.sge(0, 0), from.sge(1200, 300)}, 1)
               .to(0x1000, 0x55));
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 2).to(0x1000, 0x56));
    m.post(SendWr(IBV_WR_SEND, {}, 3));
  }
  // Lets `octets` go, in any number of batches; returns them.
  Octets send(size_t octets) {
    Octets out;
    while (octets > 0 && m.tx().fill()) {
      const Octets pending = m.pending();
      const size_t taken = std::min(octets, pending.size());
      out.insert(out.end(), pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(taken));
      m.take(taken);
      octets -= taken;
    }
    return out;
  }
  Machine m;
  Buffer from, sink;
};

TEST(TxEnd, PartialSendsOfEverySizeGiveTheSameStream) {
  const Octets whole = Mixture().m.transmit();
  ASSERT_GT(whole.size(), 2500u);
  for (size_t piece = 1; piece < whole.size(); piece += piece < 200 ? 1 : 61) {
    SCOPED_TRACE(piece);
    Mixture x;
    Octets got;
    for (Octets part; !(part = x.send(piece)).empty();)
      got.insert(got.end(), part.begin(), part.end());
    ASSERT_TRUE(got == whole);
    ASSERT_EQ(x.m.sent().size(), 2u);  // the rest waits for the Read
  }
}

TEST(TxEnd, CompletesWithTheLastOctetAndNotBefore) {
  for (bool markers : {false, true}) {
    for (size_t length : {0u, 5u, 2000u, 300000u}) {
      Machine m({.tx_markers = markers});
      Buffer from(m.memory, pattern(length));
      m.post(SendWr(IBV_WR_SEND, {from.sge()}));
      for (size_t left = ~size_t{0}; left > 0;) {
        ASSERT_TRUE(m.tx().fill());
        left = m.pending().size() - 1;
        m.take(left);
        EXPECT_TRUE(m.sent().empty());
        m.take(1);
        left = m.tx().fill() ? 1 : 0;
      }
      EXPECT_EQ(m.sent().size(), 1u);
    }
  }
}

TEST(TxEnd, ATerminateFollowsAWholeFpduWhereverTheStreamIs) {
  const size_t size = Mixture().m.transmit().size();
  rdmap::Terminate terminate;
  terminate.code = core::TermCode::kMpaCrc;
  for (bool detach_before : {false, true}) {
    for (size_t cut = 0; cut <= size; ++cut) {
      SCOPED_TRACE(cut);
      Mixture x;
      Octets stream = x.send(cut);
      if (cut == 0) x.m.tx().fill();
      if (detach_before) {
        ASSERT_TRUE(x.m.tx().release_regions());
      }
      qp::Tx::Cause cause;
      cause.send = &terminate;
      EXPECT_FALSE(x.m.tx().abandon(cause));
      // The memory may go now.
      x.from.deregister();
      std::fill_n(x.from.data(), x.from.size(), 0);
      const std::vector<ibv_wc> done = x.m.sent();
      ASSERT_EQ(done.size(), 4u);
      for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(done[i].wr_id, i);
      for (size_t i = 1; i < 4; ++i) {  // once one is flushed, so are all behind it
        if (done[i - 1].status != IBV_WC_SUCCESS) {
          EXPECT_EQ(done[i].status, IBV_WC_WR_FLUSH_ERR);
        }
      }
      EXPECT_EQ(done[2].status, IBV_WC_WR_FLUSH_ERR);

      Octets rest;
      while (x.m.tx().fill()) {
        const Octets pending = x.m.pending();
        rest.insert(rest.end(), pending.begin(), pending.begin() + 1);
        x.m.take(1);
      }
      // At most the FPDU begun (up to 136 octets) and the Terminate.
      EXPECT_LE(rest.size(), 136u + 28u);
      stream.insert(stream.end(), rest.begin(), rest.end());
      const std::vector<Octets> ulpdus = ulpdus_of(stream);
      ASSERT_FALSE(ulpdus.empty());
      EXPECT_EQ(to_hex(fpdu(ulpdus.back())), to_hex(vector("V27-term-llp-crc").octets));
      EXPECT_TRUE(x.m.sent().empty());  // nothing completes twice
    }
  }
}

TEST(TxEnd, WithoutATerminateTheStreamEndsAtAnFpdu) {
  const size_t size = Mixture(false).m.transmit().size();
  for (size_t cut = 0; cut <= size; cut += 7) {
    Mixture x(false);
    Octets stream = x.send(cut);
    x.m.tx().abandon({});
    x.from.deregister();
    while (x.m.tx().fill()) {
      const Octets pending = x.m.pending();
      stream.insert(stream.end(), pending.begin(), pending.end());
      x.m.take(pending.size());
    }
    ulpdus_of(stream, false);
  }
}

TEST(TxEnd, PostsAfterwardsAreFlushed) {
  Machine m({.depth = 2});
  Buffer from(m.memory, pattern(100));
  m.post(SendWr(IBV_WR_SEND, {from.sge()}, 0));
  ASSERT_TRUE(m.tx().fill());
  m.take(3);
  m.tx().abandon({});
  EXPECT_EQ(m.sent().at(0).status, IBV_WC_WR_FLUSH_ERR);
  for (uint64_t round = 0; round < 5; ++round) {
    ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, {from.sge()}, 10).flags(0)), 0);
    ASSERT_EQ(m.post(SendWr(IBV_WR_RDMA_READ, {from.sge()}, 11).flags(0)), 0);
    if (round == 0)
      m.take(m.pending().size());  // the FPDU begun is finished; its WR has long completed
    m.tx().flush(m.connection->shared);
    const std::vector<ibv_wc> done = m.sent();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(done[0].wr_id, 10u);
    EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST(TxEnd, AQueueThatNeverHadAConnectionIsFlushedToo) {
  Machine m;
  qp::Tx never_started;
  Buffer from(m.memory, pattern(100));
  m.post(SendWr(IBV_WR_SEND, {from.sge()}, 5).flags(0));
  never_started.flush(m.connection->shared);
  EXPECT_EQ(m.sent().at(0).status, IBV_WC_WR_FLUSH_ERR);
}

TEST(TxEnd, ABadKeyIsFoundAfterWhatCameBeforeWasSent) {
  enum Mistake { kUnknownKey, kTooLong, kForeign, kNotWritable };
  for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    for (Mistake mistake : {kUnknownKey, kTooLong, kForeign, kNotWritable}) {
      if (mistake == kNotWritable && opcode != IBV_WR_RDMA_READ) continue;  // sending only reads
      SCOPED_TRACE(std::to_string(opcode) + " " + std::to_string(mistake));
      Machine m;
      Buffer good(m.memory, pattern(100)), foreign(m.memory, pattern(100), kAllAccess, kOtherPd),
          sealed(m.memory, pattern(100), mem::kRemoteRead);
      const ibv_sge bad = mistake == kUnknownKey ? ibv_sge{good.start(), 4, good.stag() ^ 1}
                          : mistake == kTooLong  ? ibv_sge{good.start() + 97, 4, good.stag()}
                          : mistake == kForeign  ? foreign.sge()
                                                 : sealed.sge();
      m.post(SendWr(IBV_WR_SEND, {good.sge()}, 0));
      m.post(SendWr(opcode, {good.sge(0, 10), bad}, 1).to(0x1000, 1).flags(0));
      m.post(SendWr(IBV_WR_SEND, {good.sge()}, 2));
      EXPECT_EQ(ulpdus_of(m.transmit()).size(), 1u);
      ASSERT_TRUE(m.tx().fault().raised);
      EXPECT_FALSE(m.tx().fault().local_access);
      const rdmap::Terminate terminate = m.tx().fault().terminate;
      qp::Tx::Cause cause;
      cause.send = &terminate;
      m.tx().abandon(cause);
      const std::vector<ibv_wc> done = m.sent();
      ASSERT_EQ(done.size(), 3u);
      EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
      EXPECT_EQ(done[1].status, IBV_WC_LOC_PROT_ERR);
      EXPECT_EQ(done[2].status, IBV_WC_WR_FLUSH_ERR);
      // Terminate 0x0000 without headers.
      EXPECT_EQ(to_hex(ulpdus_of(m.pending()).at(0)), to_hex(untagged(7, 2, 1, 0, Octets(4))));
    }
  }
}

TEST(TxEnd, ARegionThatGoesDuringItsAnswerIsToldWithTheRestOfTheRequest) {
  // RFC 5040 4.8: the echoed Read Request is advanced by what was sent. 300 octets in 114s: two
  // went.
  Machine m({.initiator = false, .emss = kSmallEmss, .max_sge = 1});
  Buffer source(m.memory, pattern(40000));
  const Octets header =
      read_request(0xaabbcc01, 0x7f0000001000, 40000, source.stag(), source.start());
  const Octets request = untagged(1, 1, 1, 0, header);
  ASSERT_EQ(m.feed(fpdu(request)), qp::RxStatus::kOk);
  ASSERT_TRUE(m.tx().fill());
  size_t sent = 0;
  for (const Octets& ulpdu : ulpdus_of(m.pending())) sent += ulpdu.size() - 14;
  ASSERT_LT(sent, 40000u);
  m.take(m.pending().size());
  const uint32_t stag = source.stag();
  source.deregister();
  EXPECT_FALSE(m.tx().fill());
  ASSERT_TRUE(m.tx().fault().raised);
  EXPECT_TRUE(m.tx().fault().local_access);
  const rdmap::Terminate terminate = m.tx().fault().terminate;
  qp::Tx::Cause cause;
  cause.send = &terminate;
  m.tx().abandon(cause);
  Octets body = {0x01, 0x00, 0xe0, 0x00, 0x00, 46};
  body.insert(body.end(), request.begin(), request.begin() + 18);
  body =
      concat(body, read_request(0xaabbcc01, 0x7f0000001000 + sent,
                                static_cast<uint32_t>(40000 - sent), stag, source.start() + sent));
  EXPECT_EQ(to_hex(ulpdus_of(m.pending()).at(0)), to_hex(untagged(7, 2, 1, 0, body)));
}

// Terminates of the peer and the work request they speak of.
class Blame : public testing::Test {
 protected:
  Blame() : sink(m.memory, 100), from(m.memory, pattern(100)) {
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(0x9000, 0x51));
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 1).to(0x9100, 0x52));
    requests = ulpdus_of(m.transmit());
    m.post(SendWr(IBV_WR_SEND, {from.sge()}, 2));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 3).to(0x9200, 0x53).flags(0));
    m.post(SendWr(IBV_WR_SEND, {from.sge()}, 4));
    EXPECT_TRUE(m.tx().fill());  // built, not taken: none of the three is done
  }
  std::vector<ibv_wc_status> after(uint16_t code, const Octets& ddp_header,
                                   const Octets& read_header = {}) {
    rdmap::Terminate t;
    t.code = static_cast<core::TermCode>(code);
    t.has_length = t.has_ddp_header = !ddp_header.empty();
    t.ddp_header_size = static_cast<uint32_t>(ddp_header.size());
    std::copy(ddp_header.begin(), ddp_header.end(), t.ddp_header);
    t.has_read_header = !read_header.empty();
    std::copy(read_header.begin(), read_header.end(), t.read_header);
    qp::Tx::Cause cause;
    cause.received = &t;
    blamed = m.tx().abandon(cause);
    std::vector<ibv_wc_status> out;
    for (const ibv_wc& wc : m.sent()) out.push_back(wc.status);
    return out;
  }
  Machine m;
  Buffer sink, from;
  std::vector<Octets> requests;
  bool blamed = false;
};
constexpr auto kFlush = IBV_WC_WR_FLUSH_ERR, kAccess = IBV_WC_REM_ACCESS_ERR,
               kInvalid = IBV_WC_REM_INV_REQ_ERR;
using Statuses = std::vector<ibv_wc_status>;

TEST_F(Blame, AReadByItsCookieThoughTheMsnIsWrong) {
  Octets header(requests[1].begin(), requests[1].begin() + 18);
  header[13] = 77;  // siw puts something else there
  const Octets read(requests[1].begin() + 18, requests[1].end());
  EXPECT_EQ(after(0x0102, header, read), (Statuses{kFlush, kAccess, kFlush, kFlush, kFlush}));
  EXPECT_TRUE(blamed);
}

TEST_F(Blame, AReadByItsMsn) {
  const Octets header(requests[0].begin(), requests[0].begin() + 18);
  EXPECT_EQ(after(0x1202, header), (Statuses{kInvalid, kFlush, kFlush, kFlush, kFlush}));
}

TEST_F(Blame, ASendByItsMsn) {
  const Octets header = untagged(3, 0, 2, 0, {});
  EXPECT_EQ(after(0x1205, header), (Statuses{kFlush, kFlush, kFlush, kFlush, kInvalid}));
}

TEST_F(Blame, AWriteByWhereItWrites) {
  const Octets header = tagged(0, 0x53, 0x9200 + 50, {});
  EXPECT_EQ(after(0x1101, header), (Statuses{kFlush, kFlush, kFlush, kAccess, kFlush}));
  EXPECT_TRUE(blamed);
}

TEST_F(Blame, NobodyForAnotherWrite) {
  EXPECT_EQ(after(0x1101, tagged(0, 0x53, 0x9200 - 1, {})), (Statuses(5, kFlush)));
  EXPECT_FALSE(blamed);
}

TEST_F(Blame, NobodyWithoutAHeader) {
  EXPECT_EQ(after(0x2002, {}), (Statuses(5, kFlush)));
  EXPECT_FALSE(blamed);
}

TEST_F(Blame, NoOneWhoHasCompleted) {
  m.take(m.pending().size());  // Send, Write and Send have gone; Reads hold them back
  EXPECT_EQ(after(0x1205, untagged(3, 0, 1, 0, {})), (Statuses(5, kFlush)));
  EXPECT_FALSE(blamed);
}

}  // namespace
}  // namespace uiw::test
