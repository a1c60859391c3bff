// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Before a Terminate its sender says what has arrived, so that of several requests that fit what it
// names none is blamed that was placed or delivered.
#include <gtest/gtest.h>

#include "qp/peer_hints.h"
#include "support/window.h"

namespace uiw::test {
namespace {

using qp::RxStatus;
using Statuses = std::vector<ibv_wc_status>;

constexpr auto kOk = IBV_WC_SUCCESS, kFlush = IBV_WC_WR_FLUSH_ERR, kAccess = IBV_WC_REM_ACCESS_ERR;
constexpr uint32_t kThisQp = 42;  // Machine's
constexpr uint8_t kReadRequest = 1, kReadResponse = 2, kTerminate = 7;

uint8_t opcode_of(const Octets& ulpdu) {
  return ulpdu.at(1) & 0xf;
}
bool is_arrival_hint(const Octets& ulpdu) {
  return ulpdu.size() == 14 && core::load_be32(&ulpdu[6]) == qp::kArrivalHintTag;
}

// The requests of one end, whose completions are acknowledged, and the other, which refuses some.
class LastArrivals : public testing::Test {
 protected:
  explicit LastArrivals(const MachineOptions& peer = {.initiator = false,
                                                      .ird = 255,
                                                      .acknowledged = true})
      : b(peer) {}

  void write(uint64_t to, uint32_t stag, size_t size = 10) {
    ASSERT_EQ(a.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, size)}).to(to, stag)), 0);
  }
  void cross(std::span<const uint8_t> octets) { ASSERT_EQ(b.feed(octets), RxStatus::kOk); }
  // b refuses what has come, and says so; how a's requests complete by that.
  Statuses after_refusal() {
    said = ulpdus_of(end_of_b());
    Octets octets;
    for (const Octets& ulpdu : said) octets = concat(octets, fpdu(ulpdu));
    EXPECT_EQ(a.feed(octets), RxStatus::kTerminated);
    a.tx().abandon({.received = &a.rx().terminate()});
    Statuses out;
    for (const ibv_wc& wc : a.sent()) out.push_back(wc.status);
    return out;
  }
  Octets end_of_b() {
    b.tx().abandon({.send = &b.rx().fault().terminate});
    return b.pending();
  }

  Machine a{MachineOptions{.acknowledged = true}}, b;
  Buffer from{a.memory, pattern(200)}, target{b.memory, 100};
  std::vector<Octets> said;  // by b at its end
};

TEST_F(LastArrivals, AWriteBehindTheEndOfTheRegionThatAnotherFilled) {
  write(target.start(), target.stag(), 100);
  write(target.start() + 100, target.stag(), 8);
  ASSERT_EQ(b.feed(a.transmit()), RxStatus::kFault);
  EXPECT_EQ(after_refusal(), (Statuses{kOk, kAccess}));
}

TEST_F(LastArrivals, OneOfManyWritesToOnePlace) {
  for (int i = 0; i < 6; ++i) write(target.start(), target.stag());
  const std::vector<Octets> writes = ulpdus_of(a.transmit());
  for (size_t i = 0; i < 3; ++i) cross(fpdu(writes.at(i)));
  target.deregister();
  ASSERT_EQ(b.feed(fpdu(writes.at(3))), RxStatus::kFault);
  EXPECT_EQ(after_refusal(), (Statuses{kOk, kOk, kOk, kAccess, kFlush, kFlush}));
}

TEST_F(LastArrivals, AWriteBehindASendThatTookItsKey) {
  Buffer region(b.memory, 64, kBindable);
  Window window(b.memory);
  window.bind_now(kThisQp, region, 0, 64, mem::kRemoteWrite);
  b.receive(RecvWr({target.sge()}));
  write(region.start(), window.stag());
  a.post(invalidating(IBV_WR_SEND_WITH_INV, window.stag(), {from.sge(0, 5)}));
  write(region.start(), window.stag());
  ASSERT_EQ(b.feed(a.transmit()), RxStatus::kFault);
  EXPECT_EQ(after_refusal(), (Statuses{kOk, kOk, kAccess}));
}

TEST_F(LastArrivals, ASendWhoseInvalidationIsRefusedIsNone) {
  for (int i = 0; i < 2; ++i) b.receive(RecvWr({target.sge()}));
  a.post(SendWr(IBV_WR_SEND, {from.sge(0, 5)}));
  a.post(invalidating(IBV_WR_SEND_WITH_INV, 0x12345678, {from.sge(0, 5)}));
  ASSERT_EQ(b.feed(a.transmit()), RxStatus::kFault);
  EXPECT_EQ(after_refusal(), (Statuses{kOk, IBV_WC_REM_INV_REQ_ERR}));
}

// Whatever ends it: a fault that names no request.
TEST_F(LastArrivals, AreCompleteAlsoWhereNothingIsNamed) {
  b.receive(RecvWr({target.sge()}));
  a.post(SendWr(IBV_WR_SEND, {from.sge(0, 5)}));
  write(target.start(), target.stag());
  const Octets octets = a.transmit();
  cross(std::span(octets).first(octets.size() - fpdu(Octets(18 + 28)).size()));
  Octets damaged(octets.end() - 52, octets.end());
  damaged[30] ^= 1;
  ASSERT_EQ(b.feed(damaged), RxStatus::kFault);
  EXPECT_EQ(after_refusal(), (Statuses{kOk, kOk}));
}

TEST_F(LastArrivals, NothingIsSaidWhereNothingHasCome) {
  write(target.start(), target.stag() ^ 0x100);
  write(target.start(), target.stag());
  ASSERT_EQ(b.feed(a.transmit()), RxStatus::kFault);
  EXPECT_EQ(after_refusal(), (Statuses{kAccess, kFlush}));
  EXPECT_EQ(said.size(), 1u);
}

// Behind an answer for each of as many questions as a call takes.
TEST_F(LastArrivals, HaveRoomBehindAFullBatch) {
  for (uint32_t msn = 1; msn <= 200; ++msn)
    cross(fpdu(untagged(kReadRequest, 1, msn, 0, read_request(msn, 0, 0, 1, 0))));
  cross(fpdu(tagged(0, target.stag(), target.start(), pattern(10))));
  ASSERT_EQ(b.feed(fpdu(tagged(0, target.stag() ^ 0x100, 0, pattern(10)))), RxStatus::kFault);
  const std::vector<Octets> ulpdus = ulpdus_of(end_of_b());
  ASSERT_GT(ulpdus.size(), 100u);
  EXPECT_EQ(opcode_of(ulpdus.end()[-1]), kTerminate);
  EXPECT_TRUE(is_arrival_hint(ulpdus.end()[-2]));
  EXPECT_EQ(opcode_of(ulpdus.end()[-3]), kReadResponse);
}

// In the middle of a message.
class InAMessage : public LastArrivals {
 protected:
  // b is to have sent some of one when it finds what is wrong.
  void begin_message() {
    b.post(SendWr(IBV_WR_SEND, {large.sge()}));
    ASSERT_TRUE(b.tx().fill());
    b.take(b.pending().size());
  }
  bool hints() {
    EXPECT_EQ(b.feed(fpdu(tagged(0, target.stag() ^ 0x100, 0, pattern(10)))), RxStatus::kFault);
    const std::vector<Octets> ulpdus = ulpdus_of(end_of_b());
    EXPECT_EQ(opcode_of(ulpdus.back()), kTerminate);
    return ulpdus.size() == 2 && is_arrival_hint(ulpdus[0]);
  }
  Buffer large{b.memory, 4'000'000};
};

TEST_F(InAMessage, APeerThatHasAskedHearsIt) {
  cross(fpdu(tagged(0, target.stag(), target.start(), pattern(10))));
  cross(fpdu(untagged(kReadRequest, 1, 1, 0, read_request(7, 0, 0, 1, 0))));
  cross(fpdu(tagged(0, target.stag(), target.start(), pattern(10))));
  EXPECT_EQ(ulpdus_of(b.transmit()).size(), 1u);
  begin_message();
  EXPECT_TRUE(hints());
}

// It may be no uiwarp (RFC 5041 5.3).
TEST_F(InAMessage, AnotherDoesNot) {
  cross(fpdu(tagged(0, target.stag(), target.start(), pattern(10))));
  begin_message();
  EXPECT_FALSE(hints());
}

class LastArrivalsAtAnother : public LastArrivals {
 protected:
  LastArrivalsAtAnother() : LastArrivals({.initiator = false}) {}
};

TEST_F(LastArrivalsAtAnother, AnEndThatAsksForNothingSaysNothingUnasked) {
  write(target.start(), target.stag());
  cross(fpdu(ulpdus_of(a.transmit()).at(0)));
  write(target.start(), target.stag());
  target.deregister();
  ASSERT_EQ(b.feed(fpdu(ulpdus_of(a.transmit()).at(0))), RxStatus::kFault);
  // Either may be the one, and success is not said of what may not be there.
  EXPECT_EQ(after_refusal(), (Statuses{kAccess, kFlush}));
  EXPECT_EQ(said.size(), 1u);
}

}  // namespace
}  // namespace uiw::test
