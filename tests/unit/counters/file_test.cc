// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "counters/file.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/pages.h"
#include "counters/published_state.h"
#include "counters/snapshot.h"

namespace uiw::counters {
namespace {

int create() {
  return memfd_create("counters", MFD_CLOEXEC);
}

class CounterFile : public testing::Test {
 protected:
  void SetUp() override { set_creator(create); }

  static std::vector<Row> rows(Kind kind, const char* device) {
    Snapshot snapshot;
    EXPECT_TRUE(read(own_file(), snapshot));
    std::erase_if(snapshot.rows,
                  [&](const Row& row) { return row.kind != kind || row.device != device; });
    return snapshot.rows;
  }
};

TEST_F(CounterFile, ShowsWhatAQueuePairHasCounted) {
  Lent slot(Kind::kQueuePair, "uiw_shown", 0x123456);
  slot->posted_sends.add(7);
  slot->completed_sends.add(5);
  slot->bytes_sent.add(1ull << 40);
  const std::vector<Row> found = rows(Kind::kQueuePair, "uiw_shown");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number, 0x123456u);
  EXPECT_EQ(found[0].index, slot.index());
  EXPECT_EQ(found[0].posted_sends, 7u);
  EXPECT_EQ(found[0].sends_in_flight(), 2u);
  EXPECT_EQ(found[0].bytes_sent, 1ull << 40);
  EXPECT_FALSE(found[0].connected);
}

// Whoever reads all that can be read, as valgrind does at the end, gets a SIGBUS behind a file's
// end.
TEST_F(CounterFile, WhatCanBeReadHasMemory) {
  std::vector<std::unique_ptr<Lent>> many;
  for (uint32_t i = 0; i < 200; ++i) {
    many.push_back(std::make_unique<Lent>(Kind::kQueuePair, "uiw_many", i));
    struct stat file {};
    ASSERT_EQ(fstat(own_file(), &file), 0);
    uint64_t readable = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      uint64_t from = 0, to = 0;
      char may[5] = {};
      if (line.find("memfd:counters") == std::string::npos) continue;
      ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, may), 3);
      if (may[0] == 'r') readable += to - from;
    }
    EXPECT_EQ(readable, core::whole_pages(static_cast<size_t>(file.st_size))) << i;
  }
  EXPECT_EQ(rows(Kind::kQueuePair, "uiw_many").size(), many.size());
}

TEST_F(CounterFile, ShowsBothEndsOfAConnection) {
  Lent slot(Kind::kQueuePair, "uiw_ends", 1);
  sockaddr_storage local{}, peer{};
  auto& four = reinterpret_cast<sockaddr_in&>(local);
  four = {.sin_family = AF_INET,
          .sin_port = htons(7),
          .sin_addr = {htonl(INADDR_LOOPBACK)},
          .sin_zero = {}};
  auto& six = reinterpret_cast<sockaddr_in6&>(peer);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(8);
  six.sin6_addr = in6addr_loopback;
  set_connected(*slot, local, peer);
  const std::vector<Row> found = rows(Kind::kQueuePair, "uiw_ends");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].connected);
  EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&found[0].local));
  EXPECT_EQ(std::memcmp(&found[0].local.s6_addr[12], &four.sin_addr, 4), 0);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&found[0].peer));
  EXPECT_EQ(found[0].local_port, 7);
  EXPECT_EQ(found[0].peer_port, 8);
}

TEST_F(CounterFile, ShowsTheStateOfAQueuePair) {
  Lent slot(Kind::kQueuePair, "uiw_state", 1);
  const auto shown = [] { return rows(Kind::kQueuePair, "uiw_state").at(0).state; };
  EXPECT_EQ(shown(), 0u);
  PublishedState state(*slot, IBV_QPS_RESET);
  EXPECT_EQ(shown(), kKnownState + IBV_QPS_RESET);
  state.store(IBV_QPS_INIT);
  EXPECT_EQ(shown(), kKnownState + IBV_QPS_INIT);
  ibv_qp_state expected = IBV_QPS_RTR;
  EXPECT_FALSE(state.compare_exchange_strong(expected, IBV_QPS_RTS));
  EXPECT_EQ(expected, IBV_QPS_INIT);
  EXPECT_TRUE(state.compare_exchange_strong(expected, IBV_QPS_RTS));
  EXPECT_EQ(shown(), kKnownState + IBV_QPS_RTS);
  EXPECT_EQ(state.exchange(IBV_QPS_ERR), IBV_QPS_RTS);
  EXPECT_EQ(shown(), kKnownState + IBV_QPS_ERR);
}

TEST_F(CounterFile, WhatASharedReceiveQueueHasCountedStaysInTheSum) {
  {
    Lent queue(Kind::kSharedReceiveQueue, "uiw_srq", 0);
    queue->posted_receives.add(7);
    Lent pair(Kind::kQueuePair, "uiw_srq", 1);
    pair->srq = queue.index();
    pair->completed_receives.add(5);
    const std::vector<Row> found = rows(Kind::kSharedReceiveQueue, "uiw_srq");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].posted_receives, 7u);
    EXPECT_EQ(rows(Kind::kQueuePair, "uiw_srq").at(0).srq, found[0].index);
  }
  EXPECT_TRUE(rows(Kind::kSharedReceiveQueue, "uiw_srq").empty());
  const std::vector<Row> sum = rows(Kind::kEnded, "uiw_srq");
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_EQ(sum[0].posted_receives, 7u);
  EXPECT_EQ(sum[0].completed_receives, 5u);
}

TEST_F(CounterFile, KeepsTheSumOfWhatHasEnded) {
  for (int i = 0; i < 3; ++i) {
    Lent slot(Kind::kQueuePair, "uiw_sum", 1);
    slot->posted_sends.add(10);
    slot->rnr_waits.add(1);
  }
  EXPECT_TRUE(rows(Kind::kQueuePair, "uiw_sum").empty());
  const std::vector<Row> found = rows(Kind::kEnded, "uiw_sum");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].posted_sends, 30u);
  EXPECT_EQ(found[0].rnr_waits, 3u);
}

TEST_F(CounterFile, KeepsNothingOfCompletionQueues) {
  {
    Lent slot(Kind::kCompletionQueue, "uiw_cq", 0);
    slot->capacity.set(16);
    slot->high_water.set(3);
    const std::vector<Row> found = rows(Kind::kCompletionQueue, "uiw_cq");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].high_water, 3u);
  }
  EXPECT_TRUE(rows(Kind::kCompletionQueue, "uiw_cq").empty());
  EXPECT_TRUE(rows(Kind::kEnded, "uiw_cq").empty());
}

TEST_F(CounterFile, GrowsWithoutMovingAnything) {
  std::vector<std::unique_ptr<Lent>> many;
  for (uint32_t i = 0; i < 1000; ++i) {
    many.push_back(std::make_unique<Lent>(Kind::kQueuePair, "uiw_many", i));
    (*many.back())->posted_sends.add(1);
  }
  for (auto& lent : many) (*lent)->posted_sends.add(1);
  const std::vector<Row> found = rows(Kind::kQueuePair, "uiw_many");
  ASSERT_EQ(found.size(), 1000u);
  for (const Row& row : found) EXPECT_EQ(row.posted_sends, 2u);
}

TEST_F(CounterFile, AForksChildLeavesTheParentsAlone) {
  auto slot = std::make_unique<Lent>(Kind::kQueuePair, "uiw_fork", 1);
  const pid_t child = fork();
  if (child == 0) {
    slot.reset();
    Lent own(Kind::kQueuePair, "uiw_child", 2);
    own->posted_sends.add(1);
    Snapshot snapshot;
    _exit(read(own_file(), snapshot) && snapshot.rows.size() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rows(Kind::kQueuePair, "uiw_fork").size(), 1u);
  EXPECT_TRUE(rows(Kind::kQueuePair, "uiw_child").empty());
}

TEST_F(CounterFile, WithoutAFileItCountsAllTheSame) {
  const pid_t child = fork();
  if (child == 0) {
    set_creator([] { return -EACCES; });
    Lent slot(Kind::kQueuePair, "uiw_none", 1);
    slot->posted_sends.add(3);
    _exit(slot.index() == 0 && slot->posted_sends.get() == 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

std::vector<uint8_t> good_file() {
  Row row;
  row.device = "uiw_lo";
  row.posted_sends = 4;
  row.bytes_received = 5;
  return file_of(std::span(&row, 1));
}

TEST(Snapshot, ReadsWhatFileOfHasWritten) {
  Snapshot snapshot;
  ASSERT_TRUE(parse(good_file(), snapshot));
  ASSERT_EQ(snapshot.rows.size(), 1u);
  EXPECT_EQ(snapshot.rows[0].kind, Kind::kEnded);
  EXPECT_EQ(snapshot.rows[0].device, "uiw_lo");
  EXPECT_EQ(snapshot.rows[0].posted_sends, 4u);
  EXPECT_EQ(snapshot.rows[0].bytes_received, 5u);
}

TEST(Snapshot, ReadsNothingBehindTheEnd) {
  const std::vector<uint8_t> good = good_file();
  for (size_t size = 0; size <= good.size(); ++size) {
    // A copy of its own, so that the address sanitizer sees where it ends.
    const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<long>(size));
    Snapshot snapshot;
    EXPECT_EQ(parse(cut, snapshot), size >= kSlotSize) << size;
    EXPECT_EQ(snapshot.rows.size(), size == good.size() ? 1u : 0u) << size;
  }
}

TEST(Snapshot, TakesNoOtherLayout) {
  std::vector<uint8_t> other = good_file();
  other[0] ^= 1;
  Snapshot snapshot;
  EXPECT_FALSE(parse(other, snapshot));
}

TEST(Snapshot, WhatAnotherUserHasWrittenHarmsNoTerminal) {
  constexpr std::string_view kName = "uiw_lo";
  std::vector<uint8_t> hostile = good_file();
  // The whole name, without an end, and an escape sequence in it; then a kind that there is not.
  const auto name = std::search(hostile.begin(), hostile.end(), kName.begin(), kName.end());
  std::fill_n(name, kDeviceName, uint8_t{0x1b});
  Snapshot snapshot;
  ASSERT_TRUE(parse(hostile, snapshot));
  ASSERT_EQ(snapshot.rows.size(), 1u);
  EXPECT_EQ(snapshot.rows[0].device, std::string(kDeviceName, '?'));
  hostile[kSlotSize] = 99;
  ASSERT_TRUE(parse(hostile, snapshot));
  EXPECT_TRUE(snapshot.rows.empty());
}

TEST(Snapshot, APipeIsNotRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Snapshot snapshot;
  EXPECT_FALSE(read(ends[0], snapshot));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace uiw::counters
