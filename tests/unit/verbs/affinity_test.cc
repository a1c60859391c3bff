// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ctest runs this binary with one engine and with several (UIWARP_ENGINES).
#include "verbs/affinity.h"

#include <sched.h>

#include <algorithm>

#include "core/settings.h"
#include "support.h"

namespace uiw::verbs {
namespace {

class Affinity : public test::OpenDevice {
 protected:
  uiwarp_cq* make_on(uint32_t vector) {
    uiwarp_cq* cq = nullptr;
    int actual = 0;
    EXPECT_EQ(
        uiwarp_cq_create(context_, 4, -1, static_cast<int>(vector), nullptr, nullptr, &cq, &actual),
        0);
    return cq;
  }
  static engine::Engine* engine_of(uiwarp_cq* receives, uiwarp_cq* sends) {
    auto engine = affinity_of(*receives, *sends);
    EXPECT_TRUE(engine);
    return engine ? *engine : nullptr;
  }
  engine::Engine* at(uint32_t index) { return *context_->engine.at(index); }
};

#define NEED_THREE_ENGINES() \
  if (engine_count() < 3) GTEST_SKIP() << "there are fewer than three engines"

TEST_F(Affinity, EnginesAreAsManyAsTheSettingSaysOrFit) {
  EXPECT_EQ(static_cast<uint32_t>(uiwarp_comp_vectors()), engine_count());
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  const uint32_t fit = std::clamp(static_cast<uint32_t>(CPU_COUNT(&mine)) / 2, 1u, 8u);
  EXPECT_EQ(engine_count(), core::settings().engines > 0 ? core::settings().engines : fit);
}

TEST_F(Affinity, TheFirstIsToTheEngineThatMakesConnections) {
  uiwarp_cq* cq = make_on(0);
  EXPECT_EQ(engine_of(cq, cq), &*context_->engine);
  destroy(cq);
}

TEST_F(Affinity, QueuePairsOfAQueueShareOne) {
  uiwarp_cq *a = make_on(0), *b = make_on(0), *c = make_on(0);
  engine::Engine* const first = engine_of(a, b);
  EXPECT_EQ(engine_of(a, a), first);
  EXPECT_EQ(engine_of(b, b), first);
  EXPECT_EQ(engine_of(c, b), first) << "the queue to receive by had none, the other one had";
  for (auto* cq : {a, b, c}) destroy(cq);
}

TEST_F(Affinity, WithVectorZeroQueuesSpread) {
  NEED_THREE_ENGINES();
  uiwarp_cq *a = make_on(0), *b = make_on(0), *c = make_on(0);
  EXPECT_EQ(engine_of(a, a), at(0));
  EXPECT_EQ(engine_of(b, b), at(1));
  EXPECT_EQ(engine_of(c, c), at(2));
  destroy(b);
  b = make_on(0);
  EXPECT_EQ(engine_of(b, b), at(1)) << "the one that was left has the fewest";
  for (auto* cq : {a, b, c}) destroy(cq);
}

TEST_F(Affinity, AVectorNamesAnEngine) {
  NEED_THREE_ENGINES();
  uiwarp_cq *a = make_on(2), *b = make_on(2), *c = make_on(1);
  EXPECT_EQ(engine_of(a, b), at(2));
  EXPECT_EQ(engine_of(c, c), at(1));
  EXPECT_EQ(engine_of(a, c), at(2)) << "the queue to receive by decides";
  for (auto* cq : {a, b, c}) destroy(cq);
}

TEST_F(Affinity, AQueueWithoutQueuePairsCountsForNobody) {
  NEED_THREE_ENGINES();
  uiwarp_cq *idle = make_on(0), *a = make_on(0);
  EXPECT_EQ(engine_of(a, a), at(0));
  destroy(idle);
  destroy(a);
  a = make_on(0);
  EXPECT_EQ(engine_of(a, a), at(0));
  destroy(a);
}

}  // namespace
}  // namespace uiw::verbs
