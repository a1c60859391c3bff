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

uint64_t add(Requests& requests, uint64_t wr_id, bool signaled = true) {
  Request request;
  request.wr_id = wr_id;
  request.signaled = signaled;
  return requests.add(request);
}

std::vector<uint64_t> ids(const Requests& requests) {
  std::vector<uint64_t> ids;
  for (const Request& each : requests.all()) ids.push_back(each.wr_id);
  return ids;
}

std::vector<std::pair<uint64_t, bool>> complete(Requests& requests, uint64_t wr_id, bool success) {
  std::vector<std::pair<uint64_t, bool>> visited;
  requests.complete_sends(wr_id, success, [&](const Request& request, bool itself) {
    visited.push_back({request.wr_id, itself});
  });
  return visited;
}

TEST(Requests, ACompletionEndsWhatWasPostedBeforeIt) {
  Requests requests;
  add(requests, 1, false);
  add(requests, 2, false);
  add(requests, 3);
  add(requests, 4);
  EXPECT_THAT(complete(requests, 3, true),
              ElementsAre(Pair(1, false), Pair(2, false), Pair(3, true)));
  EXPECT_THAT(ids(requests), ElementsAre(4));
}

TEST(Requests, OfEqualIdsTheOldestThatAskedForACompletionIsMeant) {
  Requests requests;
  add(requests, 0, false);
  add(requests, 0);
  add(requests, 0);
  EXPECT_THAT(complete(requests, 0, true), ElementsAre(Pair(0, false), Pair(0, true)));
  EXPECT_EQ(requests.all().size(), 1u);
}

TEST(Requests, OneThatFailedNeedNotHaveAskedForACompletion) {
  Requests requests;
  add(requests, 1, false);
  add(requests, 2);
  EXPECT_THAT(complete(requests, 1, false), ElementsAre(Pair(1, true)));
  EXPECT_THAT(ids(requests), ElementsAre(2));
}

TEST(Requests, AnUnknownCompletionChangesNothing) {
  Requests requests;
  add(requests, 1);
  EXPECT_THAT(complete(requests, 7, true), IsEmpty());
  EXPECT_FALSE(requests.complete_receive(7));
  EXPECT_THAT(ids(requests), ElementsAre(1));
}

TEST(Requests, ReceivesOfASharedQueueCompleteInAnyOrder) {
  Requests requests;
  for (uint64_t wr_id : {1, 2, 3}) add(requests, wr_id);
  EXPECT_EQ(requests.complete_receive(2)->wr_id, 2u);
  EXPECT_THAT(ids(requests), ElementsAre(1, 3));
}

TEST(Requests, WhatWasNotPostedIsTakenBack) {
  Requests requests;
  add(requests, 1);
  const uint64_t second = add(requests, 1);
  add(requests, 3);
  requests.take_back(second);
  EXPECT_THAT(ids(requests), ElementsAre(1, 3));
  requests.take_back(second);  // is gone
  EXPECT_THAT(ids(requests), ElementsAre(1, 3));
}

TEST(Requests, OfOneWithMoreSgesThanThereMayBeNoneIsLookedAt) {
  ibv_sge sges[Request::kKept];
  for (uint32_t i = 0; i < Request::kKept; ++i) sges[i] = {i, 10, 1};
  Request request;
  request.keep(sges, Request::kKept);
  uint64_t next = 0;
  request.each_sge([&](const ibv_sge& sge) { EXPECT_EQ(sge.addr, next++); });
  EXPECT_EQ(next, Request::kKept);
  EXPECT_EQ(request.bytes(), 10u * Request::kKept);
  Request refused;
  refused.keep(sges, 100'000'000);
  EXPECT_EQ(refused.sge_count, 0u);
  refused.keep(sges, -1);
  EXPECT_EQ(refused.sge_count, 0u);
}

}  // namespace
}  // namespace uiw::check
