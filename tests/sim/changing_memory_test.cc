// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A program that goes on writing to what it sends, as live migration and replicated logs do, and a
// peer that does so with Writes and atomics: what arrives may be torn, the connection lives on. In
// the simulator the program writes between the building of a batch and its carrying, over TCP a
// thread of its own does all the time.
#include <atomic>
#include <thread>

#include "sim/media.h"

namespace uiw::test {
namespace {

constexpr size_t kSize = 50000;

// Some words from `turn` on, all others in further turns. The thread sanitizer is not to look: that
// this races with the library's reading is what is tested.
__attribute__((no_sanitize("thread"))) void write_some(Buffer& memory, uint32_t turn) {
  volatile uint64_t* const words = reinterpret_cast<uint64_t*>(memory.data());
  for (size_t i = turn % 7; i < kSize / sizeof *words; i += 7)
    words[i] = turn * 0x0101010101010101u;
}

class ChangingMemory : public Behaviour {};

struct Side {
  explicit Side(mem::Table& table) : source(table, kSize), sink(table, kSize) {}

  // One message of each kind from `source`, and what is placed there.
  void post(End& me, const Side& peer) {
    ASSERT_EQ(me.receive(RecvWr({sink.sge()}, received++)), 0);
    const ibv_sge head = source.sge(64, 8), middle = source.sge(5000, 20000);
    const uint64_t target = peer.source.start();
    const uint32_t key = peer.source.stag();
    ASSERT_EQ(me.post(SendWr(IBV_WR_RDMA_READ, {middle}, posted++).to(target + 1000, key)), 0);
    ASSERT_EQ(me.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}, posted++).to(target, key)), 0);
    ASSERT_EQ(
        me.post(
            SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {head}, posted++).atomic(target + 1600, key, 1)),
        0);
    ASSERT_EQ(me.post(SendWr(IBV_WR_SEND, {head, middle, source.sge(0, 3000)}, posted++)), 0);
  }

  Buffer source, sink;
  uint64_t posted = 0, received = 0;
};

TEST_P(ChangingMemory, IsSentAndTheConnectionLives) {
#ifdef __SANITIZE_THREAD__
  if (is_tcp()) GTEST_SKIP() << "both ends race for the memory of one process";
#endif
  Side one(world->first_memory), other(world->second_memory);
  std::atomic<bool> stop{false};
  std::thread program;
  uint32_t turns = 0;
  const auto write = [&] {
    ++turns;
    write_some(one.source, turns);
    write_some(other.source, turns);
  };
  connect({.meanwhile = write}, {.meanwhile = write});
  if (is_tcp())
    program = std::thread([&] {
      while (!stop) write();
    });
  const int rounds = is_tcp() ? 100 : 4;
  for (int round = 0; round < rounds; ++round) {
    // Two at a time, so that some wait behind others.
    for (int i = 0; i < 2; ++i) {
      one.post(*a, other);
      other.post(*b, one);
    }
    const bool done = run_until([&] {
      return (a->sent_count() == one.posted && b->sent_count() == other.posted &&
              a->received_count() == one.received && b->received_count() == other.received) ||
             a->ended() || b->ended();
    });
    if (!done || a->ended() || b->ended()) break;
  }
  stop = true;
  if (program.joinable()) program.join();
  EXPECT_FALSE(a->ended() || b->ended()) << "the connection did not live";
  EXPECT_GT(turns, 0u);
  for (End* end : {a, b}) {
    EXPECT_TRUE(end->async_events().empty());
    EXPECT_EQ(end->sent_count(), size_t{8} * static_cast<size_t>(rounds));
    for (const ibv_wc& wc : end->sent()) ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    for (const ibv_wc& wc : end->received()) ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  a->disconnect();
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(a->end_error(), 0);
  EXPECT_EQ(b->end_error(), 0);
}

}  // namespace

UIWARP_EVERYWHERE(ChangingMemory, 20);

}  // namespace uiw::test
