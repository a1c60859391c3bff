// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Atomics between two ends: what they compute, what waits for what, and what mistakes lead to (RFC
// 7306).
#include <algorithm>
#include <atomic>

#include "sim/media.h"

namespace uiw::test {
namespace {

constexpr auto kAdd = IBV_WR_ATOMIC_FETCH_AND_ADD, kSwap = IBV_WR_ATOMIC_CMP_AND_SWP;
constexpr auto kOk = IBV_WC_SUCCESS, kFlush = IBV_WC_WR_FLUSH_ERR;
using Statuses = std::vector<ibv_wc_status>;
using Events = std::vector<ibv_event_type>;

// 64-bit words, registered at the peer or here.
class Words : public Buffer {
 public:
  Words(mem::Table& table, size_t count) : Buffer(table, count * 8) {}
  uint64_t get(size_t i) {
    uint64_t value;
    std::memcpy(&value, data() + 8 * i, 8);
    return value;
  }
  ibv_sge word(size_t i) const { return sge(8 * i, 8); }
  uint64_t at(size_t i) const { return start() + 8 * i; }
};

class Atomics : public Behaviour {};

TEST_P(Atomics, AddAndSwap) {
  connect();
  Words target(b->memory, 2), found(a->memory, 6);
  // One after the other, without waiting: they are executed in order (AT-11).
  ASSERT_EQ(
      a->post_all(
          {SendWr(kAdd, {found.word(0)}, 0).atomic(target.at(1), target.stag(), 40),
           SendWr(kAdd, {found.word(1)}, 1).atomic(target.at(1), target.stag(), 2),
           SendWr(kSwap, {found.word(2)}, 2).atomic(target.at(1), target.stag(), 41, 7),  // a miss
           SendWr(kSwap, {found.word(3)}, 3).atomic(target.at(1), target.stag(), 42, 7),  // a hit
           SendWr(kAdd, {found.word(4)}, 4).atomic(target.at(1), target.stag(), ~0ull - 6),
           SendWr(kAdd, {found.word(5)}, 5).atomic(target.at(1), target.stag(), 0)}),
      0);
  ASSERT_REACHED(a->sent_count() == 6);
  const std::vector<ibv_wc> done = a->sent();
  expect_in_order(done);
  for (const ibv_wc& wc : done) {
    EXPECT_EQ(wc.status, kOk);
    EXPECT_EQ(wc.opcode, wc.wr_id == 2 || wc.wr_id == 3 ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
    EXPECT_EQ(wc.byte_len, 8u);
  }
  const uint64_t expected[] = {0, 40, 42, 42, 7, 0};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(found.get(i), expected[i]) << i;
  EXPECT_EQ(target.get(1), 0u);
  EXPECT_EQ(target.get(0), 0u);
  EXPECT_EQ(b->received_count(), 0u);  // the peer's program notices nothing
}

// AT-12, AT-13: many queue pairs and a thread of the program draw numbers; each is drawn once.
TEST_P(Atomics, EveryNumberIsDrawnOnce) {
  constexpr size_t kConnections = 5, kEach = 60;
  Words target(world->second_memory, 1), found(world->first_memory, kConnections * kEach);
  std::vector<End*> ends;
  for (size_t i = 0; i < kConnections; ++i) {
    ends.push_back(world
                       ->connect({.ord = static_cast<uint16_t>(1 + i * 3)},
                                 {.ird = static_cast<uint16_t>(1 + i * 3)})
                       .first);
    for (size_t j = 0; j < kEach; ++j)
      ASSERT_EQ(
          ends[i]->post(
              SendWr(kAdd, {found.word(i * kEach + j)}, j).atomic(target.at(0), target.stag(), 1)),
          0);
  }
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(target.data()));
  std::vector<uint64_t> drawn;
  const auto all_done = [&] {
    if (drawn.size() < 1000) drawn.push_back(word.fetch_add(1));
    for (End* end : ends)
      if (end->sent_count() < kEach) return false;
    return true;
  };
  ASSERT_TRUE(world->run_until(all_done));
  for (End* end : ends) {
    expect_in_order(end->sent());
    for (const ibv_wc& wc : end->sent()) EXPECT_EQ(wc.status, kOk);
  }
  const size_t ours = drawn.size();
  for (size_t i = 0; i < kConnections * kEach; ++i) drawn.push_back(found.get(i));
  // Each connection's own draws rise.
  for (size_t i = 0; i < kConnections; ++i)
    EXPECT_TRUE(
        std::is_sorted(drawn.begin() + static_cast<std::ptrdiff_t>(ours + i * kEach),
                       drawn.begin() + static_cast<std::ptrdiff_t>(ours + (i + 1) * kEach)));
  std::sort(drawn.begin(), drawn.end());
  for (size_t i = 0; i < drawn.size(); ++i) ASSERT_EQ(drawn[i], i);
  EXPECT_EQ(word.load(), drawn.size());
}

// AT-14: after a Write, sees it; a Read after it sees its result.
TEST_P(Atomics, SeesEarlierWritesAndIsSeenByLaterReads) {
  connect();
  Words target(b->memory, 1), from(a->memory, 50), found(a->memory, 50), back(a->memory, 50);
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t value = i * 1000;
    std::memcpy(from.data() + 8 * i, &value, 8);
  }
  for (uint64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(
        a->post_all(
            {SendWr(IBV_WR_RDMA_WRITE, {from.word(i)}, i * 3).to(target.at(0), target.stag()),
             SendWr(kAdd, {found.word(i)}, i * 3 + 1).atomic(target.at(0), target.stag(), i),
             SendWr(IBV_WR_RDMA_READ, {back.word(i)}, i * 3 + 2).to(target.at(0), target.stag())}),
        0);
    ASSERT_REACHED(a->sent_count() == i * 3 + 3);
    ASSERT_EQ(found.get(i), i * 1000);
    ASSERT_EQ(back.get(i), i * 1000 + i);
  }
  expect_in_order(a->sent());
}

// AT-16: with few slots, in both directions at once, between Reads, Sends and Writes.
TEST_P(Atomics, TakeTurnsWithReadsUnderASmallOrd) {
  connect({.ird = 1, .ord = 2}, {.ird = 2, .ord = 1});
  constexpr size_t kRounds = 40;
  struct Side {
    Side(End* its, End* other)
        : end(its),
          target(other->memory, 1),
          source(other->memory, pattern(5000)),
          found(its->memory, kRounds),
          sink(its->memory, 5000) {}
    End* end;
    Words target;
    Buffer source;
    Words found;
    Buffer sink;
  };
  Side sides[] = {{a, b}, {b, a}};
  for (size_t i = 0; i < kRounds; ++i) {
    for (Side& s : sides) {
      ASSERT_EQ(
          s.end->post(
              SendWr(kAdd, {s.found.word(i)}, i * 2).atomic(s.target.at(0), s.target.stag(), 3)),
          0);
      ASSERT_EQ(s.end->post(SendWr(IBV_WR_RDMA_READ, {s.sink.sge()}, i * 2 + 1)
                                .to(s.source.start(), s.source.stag())),
                0);
    }
  }
  ASSERT_REACHED(a->sent_count() == 2 * kRounds && b->sent_count() == 2 * kRounds);
  for (Side& s : sides) {
    expect_in_order(s.end->sent());
    for (size_t i = 0; i < kRounds; ++i) EXPECT_EQ(s.found.get(i), i * 3);
    EXPECT_TRUE(s.sink.content() == s.source.content());
  }
}

// OC-13 for atomics: what is fenced waits for the answer.
TEST_P(Atomics, AFencedWriteComesAfterIt) {
  connect();
  Words target(b->memory, 1), from(a->memory, 1), found(a->memory, 30);
  from.data()[0] = 9;
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(
        a->post_all({SendWr(kAdd, {found.word(i)}, i * 2).atomic(target.at(0), target.stag(), 1),
                     SendWr(IBV_WR_RDMA_WRITE, {from.word(0)}, i * 2 + 1)
                         .to(target.at(0), target.stag())
                         .flags(IBV_SEND_SIGNALED | IBV_SEND_FENCE)}),
        0);
    ASSERT_REACHED(a->sent_count() == i * 2 + 2);
    EXPECT_EQ(found.get(i), i == 0 ? 0u : 9u);
  }
}

// --- mistakes ---

// AT-08 in effect.
TEST_P(Atomics, OfMemoryThatMayNotBeUsed) {
  enum Wrong { kStag, kEnd, kRights, kDomain };
  for (Wrong wrong : {kStag, kEnd, kRights, kDomain}) {
    SCOPED_TRACE(wrong);
    connect();
    Words good(b->memory, 2), found(a->memory, 2);
    Buffer sealed(b->memory, Octets(8), kAllAccess & ~uint32_t{mem::kRemoteAtomic}),
        foreign(b->memory, Octets(8), kAllAccess, kOtherPd);
    uint64_t address = good.start();
    uint32_t stag = good.stag();
    if (wrong == kStag) stag ^= 1;
    if (wrong == kEnd) address += 16;
    if (wrong == kRights) stag = sealed.stag(), address = sealed.start();
    if (wrong == kDomain) stag = foreign.stag(), address = foreign.start();
    ASSERT_EQ(a->post_all({SendWr(kAdd, {found.word(0)}, 0).atomic(good.at(1), good.stag(), 5),
                           SendWr(kAdd, {found.word(1)}, 1).atomic(address, stag, 5).flags(0),
                           SendWr(IBV_WR_SEND, {}, 2)}),
              0);
    ASSERT_TRUE(both_ended());
    // The Terminate may overtake the answer to the first.
    const Statuses got = statuses(a->sent());
    if (got != Statuses{kFlush, IBV_WC_REM_ACCESS_ERR, kFlush}) {
      EXPECT_EQ(got, (Statuses{kOk, IBV_WC_REM_ACCESS_ERR, kFlush}));
    }
    EXPECT_EQ(a->async_events(), Events{});
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(good.get(0), 0u);
    EXPECT_EQ(good.get(1), 5u);
    EXPECT_TRUE(sealed.content() == Octets(8) && foreign.content() == Octets(8));
    EXPECT_EQ(found.get(1), 0u);
  }
}

// AT-07: an address that looks aligned here and is not there.
TEST_P(Atomics, OfAWordThatIsNotAligned) {
  connect();
  Words found(a->memory, 1);
  Buffer target(b->memory, Octets(24), kAllAccess, kPd, 0x10004);
  ASSERT_EQ(a->post(SendWr(kAdd, {found.word(0)}, 0).atomic(0x10008, target.stag(), 5)), 0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(a->sent()), Statuses{IBV_WC_REM_INV_REQ_ERR});
  EXPECT_EQ(a->async_events(), Events{});
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_REQ_ERR});
  EXPECT_TRUE(target.content() == Octets(24));
}

// One that is wrong already here is refused, and costs nothing.
TEST_P(Atomics, RefusedWhenPosted) {
  connect();
  Words target(b->memory, 1), found(a->memory, 1);
  EXPECT_EQ(a->post(SendWr(kAdd, {found.word(0)}, 9).atomic(target.at(0) + 4, target.stag(), 1)),
            EINVAL);
  EXPECT_EQ(a->post(SendWr(kAdd, {found.sge(0, 4)}, 9).atomic(target.at(0), target.stag(), 1)),
            EINVAL);
  EXPECT_EQ(a->post(SendWr(IBV_WR_SEND_WITH_IMM, {found.word(0)}, 9)), EINVAL);
  ASSERT_EQ(a->post(SendWr(kAdd, {found.word(0)}, 0).atomic(target.at(0), target.stag(), 1)), 0);
  ASSERT_REACHED(a->sent_count() == 1);
  EXPECT_EQ(target.get(0), 1u);
}

TEST_P(Atomics, WithASinkThatCannotBeWritten) {
  connect();
  Words target(b->memory, 1);
  Buffer sink(a->memory, Octets(8), mem::kRemoteRead);
  ASSERT_EQ(a->post(SendWr(kAdd, {sink.sge()}, 0).atomic(target.at(0), target.stag(), 1)), 0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(a->sent()), Statuses{IBV_WC_LOC_PROT_ERR});
  EXPECT_EQ(target.get(0), 0u);
}

}  // namespace

UIWARP_EVERYWHERE(Atomics, 16);

}  // namespace uiw::test
