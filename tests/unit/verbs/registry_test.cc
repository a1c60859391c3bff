// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace uiw::verbs {
namespace {

// The registry never looks behind the pointer.
session::QueuePair* somebody(uintptr_t which) {
  return reinterpret_cast<session::QueuePair*>(which * 64);
}

TEST(Registry, FindsOnlyWhatIsPublished) {
  Registration registration;
  reserve_number(registration);
  EXPECT_EQ(find_queue_pair(registration.qp_num), nullptr);
  publish(registration, somebody(1));
  EXPECT_EQ(find_queue_pair(registration.qp_num), somebody(1));
  EXPECT_EQ(find_queue_pair(registration.qp_num + 1), nullptr);
  EXPECT_EQ(find_queue_pair(0), nullptr);
  EXPECT_EQ(find_queue_pair(~0u), nullptr);
  unregister(registration);
  EXPECT_EQ(find_queue_pair(registration.qp_num), nullptr);
  unregister(registration);  // idempotent
}

TEST(Registry, NumbersAre24BitsNever0Or1AndNotReusedSoon) {
  std::set<uint32_t> seen;
  for (int i = 0; i < 128; ++i) {
    Registration registration;
    reserve_number(registration);
    EXPECT_GT(registration.qp_num, 1u);
    EXPECT_LT(registration.qp_num, 1u << 24);
    EXPECT_TRUE(seen.insert(registration.qp_num).second);
    unregister(registration);
  }
}

TEST(Registry, ManyAtOnce) {
  std::vector<std::unique_ptr<Registration>> many;
  for (uintptr_t i = 1; i <= 20'000; ++i) {
    many.push_back(std::make_unique<Registration>());
    reserve_number(*many.back());
    publish(*many.back(), somebody(i));
  }
  for (uintptr_t i = 1; i <= many.size(); ++i)
    ASSERT_EQ(find_queue_pair(many[i - 1]->qp_num), somebody(i));
  for (size_t i = 0; i < many.size(); i += 2) unregister(*many[i]);
  for (size_t i = 0; i < many.size(); ++i)
    ASSERT_EQ(find_queue_pair(many[i]->qp_num) != nullptr, i % 2 == 1);
  for (auto& registration : many) unregister(*registration);
}

}  // namespace
}  // namespace uiw::verbs
