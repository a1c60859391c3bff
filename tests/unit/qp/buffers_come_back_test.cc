// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What many connections had at once for Sends that wait, on both sides, goes back to the system
// when they are done, whatever small things were allocated meanwhile and stay.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "core/pages.h"
#include "qp/rx_staging.h"
#include "qp/tx_batch.h"
#include "support/resident.h"

namespace uiw::qp {
namespace {

constexpr int kWaves = 3;
constexpr size_t kConnections = 300;

class BuffersComeBack : public testing::Test {
 protected:
  void SetUp() override {
    if (test::resident_bytes() == 0)
      GTEST_SKIP() << "a sanitizer keeps what was freed, or there is no /proc";
    // As a program does that frees a buffer of its own: malloc() takes what is smaller from its
    // heap from then on (mallopt(3), M_MMAP_THRESHOLD).
    for (int i = 0; i < 2; ++i) {
      const std::unique_ptr<uint8_t[]> large(new uint8_t[16u << 20]);
      volatile uint8_t* const first = large.get();
      *first = 1;
    }
    before_ = test::resident_bytes();
  }
  // As queue pairs and events do, between the large ones.
  void keep_something_small() { small_.push_back(std::make_unique<char[]>(200)); }
  void expect_grown(size_t bytes) { EXPECT_GT(test::resident_bytes(), before_ + bytes); }
  void expect_back(size_t kept) {
    EXPECT_LT(test::resident_bytes(), before_ + kept + (8u << 20)) << "before: " << before_;
  }

 private:
  size_t before_ = 0;
  std::vector<std::unique_ptr<char[]>> small_;
};

TEST_F(BuffersComeBack, OfMessagesWithoutReceives) {
  const std::vector<uint8_t> read(200'000, 1), begun(10'000, 2);
  for (int wave = 0; wave < kWaves; ++wave) {
    std::vector<std::unique_ptr<RxStaging>> all;
    for (size_t i = 0; i < kConnections; ++i) {
      all.push_back(std::make_unique<RxStaging>());
      ASSERT_TRUE(all.back()->append(i % 3 == 0 ? begun : read));
      keep_something_small();
    }
    expect_grown(kConnections / 3 * 2 * read.size());
    for (auto& staging : all) staging->clear();
    expect_back(16 * 69'632);  // core/stock.h
  }
}

TEST_F(BuffersComeBack, OfSendsThatTheSocketDidNotTake) {
  constexpr size_t kEach = 300'000;
  for (int wave = 0; wave < kWaves; ++wave) {
    std::vector<TxBatch*> all;
    for (size_t i = 0; i < kConnections; ++i) {
      all.push_back(TxBatchPool::take());
      ASSERT_TRUE(all.back());
      std::memset(all.back()->arena_end(), 1, kEach);
      keep_something_small();
    }
    expect_grown(kConnections * kEach);
    for (TxBatch* batch : all) TxBatchPool::give(batch);
    expect_back(16 * (kEach + sizeof(TxBatch)));
  }
}

}  // namespace
}  // namespace uiw::qp
