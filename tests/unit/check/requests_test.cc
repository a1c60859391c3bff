// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/requests.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

namespace uiw::check {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Of = Requests::Of;

uint32_t add(Requests& requests, uint64_t wr_id, bool signaled = true) {
  return requests.add({.wr_id = wr_id, .signaled = signaled});
}

std::vector<uint64_t> ids(const Requests& requests) {
  std::vector<uint64_t> ids;
  requests.each([&](const Request& each) { ids.push_back(each.wr_id); });
  return ids;
}

std::vector<std::pair<uint64_t, bool>> complete(Requests& requests, uint64_t wr_id, bool success) {
  std::vector<std::pair<uint64_t, bool>> visited;
  requests.complete_sends(wr_id, success, [&](const Request& request, bool itself) {
    visited.push_back({request.wr_id, itself});
  });
  return visited;
}

bool receive(Requests& requests, uint64_t wr_id) {
  bool found = false;
  requests.complete_receive(wr_id, [&](const Request& request) { found = request.wr_id == wr_id; });
  return found;
}

// Of two threads that post at once.
TEST(RequestsOfTwoThreads, CompleteInAnotherOrderThanTheyCame) {
  Requests requests(Requests::Of::kSends);
  add(requests, 1);
  add(requests, 2, false);
  add(requests, 3);
  add(requests, 4, false);
  using Visited = std::vector<std::pair<uint64_t, bool>>;
  EXPECT_EQ(complete(requests, 3, true), (Visited{{2, false}, {3, true}}));
  EXPECT_EQ(ids(requests), (std::vector<uint64_t>{1, 4}));
  EXPECT_EQ(complete(requests, 1, false), (Visited{{1, true}}));
  EXPECT_EQ(ids(requests), (std::vector<uint64_t>{4}));
}

TEST(Requests, ACompletionEndsWhatWasPostedBeforeIt) {
  Requests requests(Of::kSends);
  add(requests, 1, false);
  add(requests, 2, false);
  add(requests, 3);
  add(requests, 4);
  EXPECT_THAT(complete(requests, 3, true),
              ElementsAre(Pair(1, false), Pair(2, false), Pair(3, true)));
  EXPECT_THAT(ids(requests), ElementsAre(4));
}

TEST(Requests, OfEqualIdsTheOldestThatAskedForACompletionIsMeant) {
  Requests requests(Of::kSends);
  add(requests, 0, false);
  add(requests, 0);
  add(requests, 0);
  EXPECT_TRUE(requests.is_ambiguous(0));
  EXPECT_THAT(complete(requests, 0, true), ElementsAre(Pair(0, false), Pair(0, true)));
  EXPECT_EQ(requests.size(), 1u);
  EXPECT_FALSE(requests.is_ambiguous(0));
}

TEST(Requests, OneThatFailedNeedNotHaveAskedForACompletion) {
  Requests requests(Of::kSends);
  add(requests, 1, false);
  EXPECT_FALSE(requests.has_signaled());
  add(requests, 2);
  EXPECT_TRUE(requests.has_signaled());
  EXPECT_THAT(complete(requests, 1, false), ElementsAre(Pair(1, true)));
  EXPECT_THAT(ids(requests), ElementsAre(2));
}

TEST(Requests, WhenOneOfEqualIdsFailedItIsNotSureWhichAreLeft) {
  Requests requests(Of::kSends);
  for (int i = 0; i < 3; ++i) add(requests, 0);
  add(requests, 1);
  EXPECT_TRUE(requests.is_sure());
  complete(requests, 0, true);
  EXPECT_TRUE(requests.is_sure());
  complete(requests, 0, false);
  EXPECT_FALSE(requests.is_sure());
  complete(requests, 0, false);
  complete(requests, 1, false);
  EXPECT_FALSE(requests.is_sure());
  requests.clear();
  EXPECT_TRUE(requests.is_sure());
  for (const uint64_t wr_id : {1, 2}) add(requests, wr_id);
  complete(requests, 1, false);
  EXPECT_TRUE(requests.is_sure());
}

TEST(Requests, AnUnknownCompletionChangesNothing) {
  Requests requests(Of::kSends);
  add(requests, 1);
  EXPECT_THAT(complete(requests, 7, true), IsEmpty());
  EXPECT_FALSE(receive(requests, 7));
  EXPECT_THAT(ids(requests), ElementsAre(1));
}

TEST(Requests, ReceivesOfASharedQueueCompleteInAnyOrder) {
  Requests requests(Of::kReceives, 8);
  for (uint64_t wr_id = 1; wr_id <= 6; ++wr_id) add(requests, wr_id);
  EXPECT_TRUE(receive(requests, 2));
  EXPECT_THAT(ids(requests), ElementsAre(1, 3, 4, 5, 6));
  EXPECT_TRUE(receive(requests, 5));
  EXPECT_THAT(ids(requests), ElementsAre(1, 3, 4, 6));
  for (uint64_t wr_id = 7; wr_id <= 10; ++wr_id) add(requests, wr_id);  // round the end of the ring
  EXPECT_TRUE(receive(requests, 9));
  EXPECT_TRUE(receive(requests, 3));
  EXPECT_THAT(ids(requests), ElementsAre(1, 4, 6, 7, 8, 10));
}

TEST(Requests, WhatWasNotPostedIsTakenBack) {
  Requests requests(Of::kSends);
  add(requests, 1);
  const uint32_t second = add(requests, 1);
  add(requests, 3);
  EXPECT_TRUE(requests.take_back(second));
  EXPECT_THAT(ids(requests), ElementsAre(1, 3));
  EXPECT_FALSE(requests.take_back(second));  // is gone
  EXPECT_THAT(ids(requests), ElementsAre(1, 3));
}

TEST(Requests, AreTakenBackHoweverManyThereWereBefore) {
  Requests requests(Of::kReceives, 1);
  uint32_t first = add(requests, 0);
  for (uint64_t wr_id = 1; wr_id < (1 << 24); ++wr_id) {
    const uint32_t second = add(requests, wr_id);
    requests.take_back(wr_id % 2 ? first : first + 1);
    if (wr_id % 2) first = second;
    ASSERT_EQ(requests.size(), 1u);
    ASSERT_EQ(requests[0].wr_id, wr_id % 2 ? wr_id : wr_id - 1);
  }
}

TEST(Requests, ComeBackAsTheyWereAdded) {
  const ibv_sge sges[] = {{1, 10, 100}, {2, 20, 200}};
  const Request one{.wr_id = 7,
                    .role = Role::kSink,
                    .signaled = true,
                    .sges = sges,
                    .remote_address = 0x123456789abc,
                    .rkey = 0x77,
                    .fingerprint = 0xffffffff,
                    .posted = Stack::lost()};
  Requests requests(Of::kSends, 64, 2);
  for (int i = 0; i < 40; ++i) {
    requests.add({});
    if (i % 2) requests.add(one);
    if (i == 10) requests.complete_sends(7, true, [](const Request&, bool) {});
  }
  size_t seen = 0;
  requests.each([&](const Request& each) {
    if (each.wr_id == 0) {
      EXPECT_TRUE(each.sges.empty() && !each.fingerprint);
      return;
    }
    ++seen;
    EXPECT_EQ(each.role, one.role);
    EXPECT_TRUE(each.signaled);
    ASSERT_EQ(each.sges.size(), 2u);
    EXPECT_EQ(each.sges[1].addr, 2u);
    EXPECT_EQ(each.sges[1].length, 20u);
    EXPECT_EQ(each.sges[1].lkey, 200u);
    EXPECT_EQ(each.remote_address, one.remote_address);
    EXPECT_EQ(each.rkey, one.rkey);
    EXPECT_EQ(each.fingerprint, one.fingerprint);
    EXPECT_EQ(each.posted, one.posted);
    EXPECT_EQ(each.bytes(), 30u);
  });
  EXPECT_EQ(seen, 19u);
}

TEST(Requests, ForgetAFingerprint) {
  Requests requests(Of::kSends);
  for (uint32_t i = 0; i < 2; ++i) requests.add({.fingerprint = i});
  requests.forget_fingerprint(0);
  EXPECT_FALSE(requests[0].fingerprint);
  EXPECT_EQ(requests[1].fingerprint, 1u);
}

TEST(Requests, OfOneWithMoreSgesThanThereMayBeNoneIsLookedAt) {
  const ibv_sge sges[Request::kMostSges] = {};
  EXPECT_EQ(sges_of(sges, Request::kMostSges).size(), Request::kMostSges);
  EXPECT_TRUE(sges_of(sges, 100'000'000).empty());
  EXPECT_TRUE(sges_of(sges, -1).empty());
  Requests requests(Of::kReceives, 4, 1);
  requests.add({.sges = {sges, 2}});
  requests.add({.sges = {sges, 1}});
  EXPECT_TRUE(requests[0].sges.empty());
  EXPECT_EQ(requests[1].sges.size(), 1u);
}

}  // namespace
}  // namespace uiw::check
