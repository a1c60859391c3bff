// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Several Reads of ours on their way: each answer completes one, the oldest, and shows what it
// brought (RFC 5040 5.2, 5.5; conformance RO-20, OC-07, OC-08).
#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

class Reads : public testing::Test {
 protected:
  Reads() {
    for (uint32_t i = 0; i < 3; ++i) {
      sinks.push_back(std::make_unique<Buffer>(m.memory, 10));
      m.post(SendWr(IBV_WR_RDMA_READ, {sinks[i]->sge()}, i).to(0x1000, 0x55));
    }
    for (const Octets& ulpdu : ulpdus_of(m.transmit())) cookies.push_back(read_be32(&ulpdu[18]));
  }
  RxStatus answer(uint32_t which, uint64_t to, size_t size, bool last) {
    return m.feed(fpdu(tagged(2, cookies.at(which), to, pattern(size, which), last)));
  }
  std::vector<uint64_t> completed() {
    m.tx().retire();
    std::vector<uint64_t> out;
    for (const ibv_wc& wc : m.sent()) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      out.push_back(wc.wr_id);
    }
    return out;
  }
  uint16_t code() { return static_cast<uint16_t>(m.rx().fault().terminate.code); }

  Machine m{MachineOptions{.ord = 3}};
  std::vector<std::unique_ptr<Buffer>> sinks;
  std::vector<uint32_t> cookies;
};
using Ids = std::vector<uint64_t>;

TEST_F(Reads, AreCompletedOneByOneByTheirAnswers) {
  for (uint32_t i = 0; i < 3; ++i) {
    for (uint32_t later = i; later < 3; ++later) EXPECT_TRUE(sinks[later]->content() == Octets(10));
    ASSERT_EQ(answer(i, 0, 4, false), RxStatus::kOk);
    EXPECT_EQ(completed(), Ids{});
    const Octets whole = pattern(10, i);
    ASSERT_EQ(m.feed(fpdu(tagged(2, cookies[i], 4, core::Bytes(whole).subspan(4)))), RxStatus::kOk);
    EXPECT_EQ(completed(), Ids{i});
    EXPECT_TRUE(sinks[i]->content() == pattern(10, i));
  }
}

TEST_F(Reads, CookiesDifferFromEachOtherAndFromEveryKey) {
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(m.memory.find(cookies[i]));
    for (size_t j = 0; j < i; ++j) EXPECT_NE(cookies[i], cookies[j]);
  }
}

// An answer cannot overtake another, nor go on with one that is over.
TEST_F(Reads, AreAnsweredInTheirOrderOnly) {
  EXPECT_EQ(answer(1, 0, 10, true), RxStatus::kFault);
  EXPECT_EQ(code(), 0x1100);
  EXPECT_EQ(completed(), Ids{});
  EXPECT_EQ(m.rx().fault().failed_slot, 0u);
  for (const auto& sink : sinks) EXPECT_TRUE(sink->content() == Octets(10));
}

TEST_F(Reads, CannotBeAnsweredTwice) {
  ASSERT_EQ(answer(0, 0, 10, true), RxStatus::kOk);
  EXPECT_EQ(answer(0, 0, 10, true), RxStatus::kFault);
  EXPECT_EQ(code(), 0x1100);
  EXPECT_EQ(completed(), Ids{0});
}

TEST_F(Reads, CannotBeAnsweredInTurns) {
  ASSERT_EQ(answer(0, 0, 4, false), RxStatus::kOk);
  EXPECT_EQ(answer(1, 0, 4, false), RxStatus::kFault);
  EXPECT_EQ(code(), 0x1100);
  EXPECT_TRUE(sinks[1]->content() == Octets(10));
}

TEST_F(Reads, AreAnsweredOnceAndThenNoMore) {
  for (uint32_t i = 0; i < 3; ++i) ASSERT_EQ(answer(i, 0, 10, true), RxStatus::kOk);
  EXPECT_EQ(completed(), (Ids{0, 1, 2}));
  EXPECT_EQ(answer(2, 0, 10, true), RxStatus::kFault);
  EXPECT_EQ(code(), 0x0206);
  EXPECT_EQ(m.rx().fault().failed_slot, qp::kNoSlot);
}

// Every total and place of the second segment of an answer but the right one.
TEST(AnswerChecks, FitTheirRequestToTheOctet) {
  for (uint64_t to = 0; to <= 12; ++to) {
    for (size_t size = 0; size <= 12; ++size) {
      for (bool last : {false, true}) {
        Machine m;
        Buffer sink(m.memory, 30);
        m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge(8, 10)}, 5).to(0x1000, 1));
        const uint32_t cookie = read_be32(&ulpdus_of(m.transmit()).at(0)[18]);
        ASSERT_EQ(m.feed(fpdu(tagged(2, cookie, 0, pattern(4), false))), RxStatus::kOk);
        const RxStatus status = m.feed(fpdu(tagged(2, cookie, to, pattern(size, 3), last)));
        const bool right = to == 4 && (last ? size == 6 : size <= 6);
        ASSERT_EQ(status, right ? RxStatus::kOk : RxStatus::kFault)
            << to << " " << size << " " << last;
        if (!right) {
          EXPECT_EQ(static_cast<uint16_t>(m.rx().fault().terminate.code), 0x1101);
          EXPECT_EQ(m.rx().fault().failed_slot, 0u);
          EXPECT_EQ(m.rx().fault().failed_status, IBV_WC_BAD_RESP_ERR);
        }
        Octets expected(30);
        const Octets first = pattern(4), second = pattern(size, 3);
        std::copy(first.begin(), first.end(), expected.begin() + 8);
        if (right) std::copy(second.begin(), second.end(), expected.begin() + 12);
        EXPECT_TRUE(sink.content() == expected);
        m.tx().retire();
        EXPECT_EQ(m.sent().size(), right && last ? 1u : 0u);
      }
    }
  }
}

// The offset of an answer is one of 64 bits: nothing is cut off when it is compared.
TEST(AnswerChecks, WithAnOffsetThatIsRightInItsLowerHalfOnly) {
  for (uint64_t to : {uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    Machine m;
    Buffer sink(m.memory, 10);
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 5).to(0x1000, 1));
    const uint32_t cookie = read_be32(&ulpdus_of(m.transmit()).at(0)[18]);
    EXPECT_EQ(m.feed(fpdu(tagged(2, cookie, to, pattern(10)))), RxStatus::kFault);
    EXPECT_EQ(static_cast<uint16_t>(m.rx().fault().terminate.code), 0x1101);
    EXPECT_TRUE(sink.content() == Octets(10));
  }
}

// RO-32, SE-28: whatever a peer does with the STag that it saw in the request, it is no key.
TEST_F(Reads, SinksOpenNoMemoryToAnythingElse) {
  for (uint32_t cookie : cookies) {
    Machine other;  // a connection of the same process has the same table
    other.connection->shared.memory = &m.memory;
    EXPECT_EQ(other.feed(fpdu(tagged(0, cookie, 0, pattern(10)))), RxStatus::kFault);
    EXPECT_EQ(static_cast<uint16_t>(other.rx().fault().terminate.code), 0x1100);
    Machine reader({.initiator = false});
    reader.connection->shared.memory = &m.memory;
    EXPECT_EQ(reader.feed(fpdu(untagged(1, 1, 1, 0, read_request(1, 0, 10, cookie, 0)))),
              RxStatus::kFault);
    EXPECT_EQ(static_cast<uint16_t>(reader.rx().fault().terminate.code), 0x0100);
  }
  EXPECT_EQ(m.feed(fpdu(tagged(0, cookies[0], 0, pattern(10)))), RxStatus::kFault);
  EXPECT_EQ(code(), 0x1100);
  for (const auto& sink : sinks) EXPECT_TRUE(sink->content() == Octets(10));
}

}  // namespace
}  // namespace uiw::test
