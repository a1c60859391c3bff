// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include <infiniband/verbs.h>

namespace uiw::trace {
namespace {

using testing::ElementsAre;

// Requests of one queue pair of one process.
class Made {
 public:
  Made() {
    history.processes.resize(1);
    history.queue_pairs.push_back({.process = 0, .number = 1});
  }
  Request& add(int64_t posted, int64_t completed, uint64_t bytes = 0,
               ibv_wc_status status = IBV_WC_SUCCESS) {
    history.requests.push_back({.queue_pair = 0,
                                .process = 0,
                                .posted = posted,
                                .completed = completed,
                                .wr_id = 0,
                                .bytes = bytes,
                                .opcode = IBV_WR_SEND,
                                .is_receive = false,
                                .signaled = true,
                                .outcome = Outcome::kCompleted,
                                .status = static_cast<uint8_t>(status)});
    return history.requests.back();
  }
  History history;
};

uint64_t sum(const std::vector<uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), uint64_t{0});
}

TEST(TraceDigest, TimeIsDividedIntoRoundStepsThatHoldAllThatWasAtWork) {
  Made made;
  for (int64_t i = 0; i < 10'000; ++i) made.add(12'345 + i * 777, 20'000 + i * 777, 3);
  const Digest found = digest(made.history);
  EXPECT_EQ(found.bins.width, 50'000);
  EXPECT_EQ(found.bins.from, 0);
  EXPECT_LE(found.bins.count, kMostBins);
  ASSERT_EQ(found.series.shown.size(), 1u);
  EXPECT_EQ(sum(found.series.shown[0].requests), 10'000u);
  EXPECT_EQ(sum(found.series.shown[0].bytes), 30'000u);
}

TEST(TraceDigest, OfFewRequestsTheStepsAreLong) {
  Made made;
  for (int64_t i = 0; i < 100; ++i) made.add(i * 1000, i * 1000 + 10);
  EXPECT_LE(digest(made.history).bins.count, kLeastBins);
}

TEST(TraceDigest, ReceivesThatWaitForTheFirstMessageDoNotStretchTheTime) {
  Made made;
  made.add(0, 1'000'000'000).is_receive = true;
  made.add(1'000'000'000, 1'000'001'000);
  const Digest found = digest(made.history);
  EXPECT_EQ(found.bins.from, 1'000'000'000);
  EXPECT_LT(found.bins.width, 1000);
}

TEST(TraceDigest, EachRequestIsInItsHistogramAndInTheHeat) {
  Made made;
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(9, 2);
  for (int64_t i = 0; i < 1000; ++i)
    made.add(i * 1000, i * 1000 + static_cast<int64_t>(latency(random)));
  const Digest found = digest(made.history);
  ASSERT_EQ(found.histograms.size(), 1u);
  const auto& counts = found.histograms[0].counts;
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), uint64_t{0}), 1000u);
  uint64_t heat = 0;
  for (const auto& column : found.heat) heat = std::accumulate(column.begin(), column.end(), heat);
  EXPECT_EQ(heat, 1000u);
}

TEST(TraceDigest, LatenciesAreWhereTheFailuresAreWhenTheirCompletionsWerePolled) {
  Made made;
  made.add(0, 1'000'000);
  made.add(0, 1'000'000, 0, IBV_WC_RETRY_EXC_ERR);
  const Digest found = digest(made.history);
  const auto& last = found.heat.at(found.bins.of(1'000'000));
  EXPECT_EQ(std::accumulate(last.begin(), last.end(), uint64_t{0}), 1u);
  EXPECT_EQ(found.failures.at(found.bins.of(1'000'000)), 1u);
}

TEST(TraceDigest, AHistogramHasItsMostWhereMostAre) {
  Made made;
  for (int64_t i = 0; i < 99; ++i) made.add(i * 1000, i * 1000 + 5000);
  made.add(99'000, 99'000 + 800'000);
  const Histogram histogram = digest(made.history).histograms.at(0);
  EXPECT_EQ(histogram.axis.low, 5000);
  EXPECT_EQ(histogram.axis.high, 1'000'000);
  EXPECT_EQ(histogram.counts.front(), 99u);
  const auto tail = static_cast<size_t>(histogram.axis.place(800'000) * kHistogramBins);
  EXPECT_EQ(histogram.counts[tail], 1u);
}

TEST(TraceDigest, FlushedRequestsAreNotAmongTheFailedAndComeBehindThem) {
  Made made;
  made.add(0, 10, 0, IBV_WC_WR_FLUSH_ERR);
  made.add(1, 20, 0, IBV_WC_RETRY_EXC_ERR);
  const Digest found = digest(made.history);
  EXPECT_EQ(found.sums.failed, 1u);
  EXPECT_EQ(found.sums.flushed, 1u);
  EXPECT_THAT(found.failed.shown, ElementsAre(1, 0));
  EXPECT_EQ(sum(found.failures), 1u);
  EXPECT_EQ(sum(found.flushes), 1u);
}

TEST(TraceDigest, WhereNothingWasSentReceivesAreTheSlowest) {
  Made made;
  made.add(0, 10).is_receive = true;
  made.add(0, 30).is_receive = true;
  const Digest found = digest(made.history);
  EXPECT_TRUE(found.heat_of_receives);
  EXPECT_THAT(found.slowest.shown, ElementsAre(1, 0));
  made.add(0, 5);
  EXPECT_THAT(digest(made.history).slowest.shown, ElementsAre(2));
}

TEST(TraceDigest, NoNumberOfASpoiltFileDoesHarm) {
  std::mt19937_64 random(1);
  constexpr int64_t kEdges[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
  const auto time = [&] {
    return random() % 2 ? kEdges[random() % std::size(kEdges)] : static_cast<int64_t>(random());
  };
  for (int round = 0; round < 2000; ++round) {
    Made made;
    for (int i = 0; i < 20; ++i) {
      Request& request = made.add(time(), time(), random());
      request.is_receive = random() % 2;
      request.opcode = static_cast<uint8_t>(random());
      request.status = static_cast<uint8_t>(random() % 3 ? 0 : random());
      request.outcome = static_cast<Outcome>(random() % 3);
    }
    Event& event = made.history.events.emplace_back();
    event = {.queue_pair = 0, .process = 0, .time = time(), .record = {}};
    event.record.kind = Kind::kAwaited;
    event.record.work.bytes = random();
    const Digest found = digest(made.history);
    EXPECT_LE(found.bins.count, kMostBins);
    EXPECT_GT(found.bins.width, 0);
    EXPECT_EQ(found.heat.size(), found.bins.count);
  }
}

}  // namespace
}  // namespace uiw::trace
