// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// RFC 5041 4.3: message sequence numbers count modulo 2^32. Connections that are nearly there.
#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

constexpr uint32_t kNearTheEnd = 0xfffffffe;
constexpr uint32_t kNumbers[] = {0xfffffffe, 0xffffffff, 0, 1};

uint16_t code_of(Machine& m) {
  return static_cast<uint16_t>(m.rx().fault().terminate.code);
}

TEST(MsnWrap, IsSentOnBothQueues) {
  Machine m({.emss = 100, .first_msn = kNearTheEnd});
  Buffer octets(m.memory, pattern(200));
  for (int i = 0; i < 4; ++i) {
    m.post(SendWr(IBV_WR_SEND, {octets.sge()}));
    m.post(SendWr(IBV_WR_RDMA_READ, {octets.sge()}).to(0x1000, 0x55));
  }
  std::vector<uint32_t> sends, requests;
  for (const Octets& ulpdu : ulpdus_of(m.transmit())) {
    const uint32_t qn = read_be32(&ulpdu[6]), msn = read_be32(&ulpdu[10]);
    (qn == 0 ? sends : requests).push_back(msn);
  }
  // Two segments each.
  EXPECT_EQ(sends, (std::vector<uint32_t>{~1u, ~1u, ~0u, ~0u, 0, 0, 1, 1}));
  EXPECT_EQ(requests, (std::vector<uint32_t>{~1u, ~0u, 0, 1}));
}

TEST(MsnWrap, IsAcceptedOnBothQueues) {
  Machine m({.initiator = false, .first_msn = kNearTheEnd});
  Buffer to(m.memory, 64), source(m.memory, pattern(10));
  for (uint64_t id = 0; id < 4; ++id) m.receive(RecvWr({to.sge()}, id));
  for (uint32_t msn : kNumbers) {
    ASSERT_EQ(m.feed(fpdu(untagged(3, 0, msn, 0, pattern(20, msn), false))), RxStatus::kOk) << msn;
    ASSERT_EQ(m.feed(fpdu(untagged(3, 0, msn, 20, pattern(5)))), RxStatus::kOk) << msn;
    const Octets header = read_request(msn, 0, 10, source.stag(), source.start());
    ASSERT_EQ(m.feed(fpdu(untagged(1, 1, msn, 0, header))), RxStatus::kOk) << msn;
    EXPECT_EQ(to_hex(m.transmit()), to_hex(fpdu(tagged(2, msn, 0, pattern(10)))));
  }
  const std::vector<ibv_wc> got = m.received();
  ASSERT_EQ(got.size(), 4u);
  for (uint64_t id = 0; id < 4; ++id) {
    EXPECT_EQ(got[id].wr_id, id);
    EXPECT_EQ(got[id].byte_len, 25u);
  }
}

// At each step every number but the right one is out of turn: those near it, and those that a
// comparison by size would take for "later" or "earlier".
TEST(MsnWrap, LetsNoOtherNumberPass) {
  for (size_t done = 0; done < 4; ++done) {
    const uint32_t right = kNumbers[done];
    for (uint32_t wrong :
         {right - 1, right + 1, right - 2, right + 2, right ^ 0x80000000, 1u, 0u, ~0u, 5u}) {
      if (wrong == right) continue;
      for (bool read : {false, true}) {
        SCOPED_TRACE(std::to_string(wrong) + " instead of " + std::to_string(right));
        Machine m({.initiator = false, .first_msn = kNearTheEnd});
        for (uint64_t id = 0; id < 4; ++id) m.receive(RecvWr({}, id));
        const auto message = [&](uint32_t msn) {
          return fpdu(read ? untagged(1, 1, msn, 0, read_request(1, 0, 0, 0, 0))
                           : untagged(3, 0, msn, 0, {}));
        };
        for (size_t i = 0; i < done; ++i) ASSERT_EQ(m.feed(message(kNumbers[i])), RxStatus::kOk);
        EXPECT_EQ(m.feed(message(wrong)), RxStatus::kFault);
        EXPECT_EQ(code_of(m), 0x1203);
      }
    }
  }
}

// The work request that a Terminate speaks of is found by its number, before and behind the wrap.
TEST(MsnWrap, DoesNotConfuseWhoIsToBlame) {
  for (size_t guilty = 0; guilty < 4; ++guilty) {
    Machine m({.first_msn = kNearTheEnd});
    Buffer octets(m.memory, pattern(10));
    for (uint64_t id = 0; id < 4; ++id) m.post(SendWr(IBV_WR_SEND, {octets.sge()}, id));
    ASSERT_TRUE(m.tx().fill());
    rdmap::Terminate told;
    told.code = core::TermCode::kUntaggedTooLong;
    told.has_length = told.has_ddp_header = true;
    told.ddp_header_size = 18;
    const Octets header = untagged(3, 0, kNumbers[guilty], 0, {});
    std::copy(header.begin(), header.end(), told.ddp_header);
    EXPECT_TRUE(m.tx().abandon({.received = &told}));
    const std::vector<ibv_wc> done = m.sent();
    ASSERT_EQ(done.size(), 4u);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(done[i].status, i == guilty ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_WR_FLUSH_ERR);
  }
}

}  // namespace
}  // namespace uiw::test
