// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/dropped_receives.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/instrumented.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::queue {
namespace {

std::vector<uint64_t> told;

class Dropped : public testing::Test {
 protected:
  void SetUp() override {
    told.clear();
    verbs_.receives_dropped = [](uint32_t qp_num, const uint64_t* wr_ids, uint32_t count) {
      EXPECT_EQ(qp_num, 7u);
      told.assign(wr_ids, wr_ids + count);
    };
    for (uint64_t wr_id = 1; wr_id <= 3; ++wr_id) {
      ibv_wc wc{};
      wc.wr_id = wr_id;
      cq_->push({wc, source_.get(), 0}, false);
    }
    ibv_wc polled;
    EXPECT_EQ(cq_->poll(1, &polled), 1);
  }
  void TearDown() override { core::instrumented.store(nullptr); }

  uiwarp_verbs verbs_{};
  std::atomic<uint64_t> freed_{0};
  std::unique_ptr<CompletionQueue> cq_ = CompletionQueue::create(8, nullptr);
  std::unique_ptr<CompletionSource> source_ =
      std::make_unique<CompletionSource>(CompletionSource::Kind::kSharedQueue, freed_);
};

TEST_F(Dropped, ReceivesAreThoseThatWereNotPolledAndTheOneThatHasBegun) {
  core::instrumented.store(&verbs_);
  const uint64_t begun = 9;
  DroppedReceives::purge(*cq_, std::move(source_), &begun).tell(7);
  EXPECT_EQ(told, (std::vector<uint64_t>{2, 3, 9}));
}

TEST_F(Dropped, ReceivesAreNotLookedForWithoutInstruments) {
  const DroppedReceives dropped = DroppedReceives::purge(*cq_, std::move(source_));
  core::instrumented.store(&verbs_);
  dropped.tell(7);
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace uiw::queue
