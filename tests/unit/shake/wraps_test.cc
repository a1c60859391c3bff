// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The table of --shake in front of a stack of which the test says when it completes what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "shake/instrument.h"
#include "unit/faults/fake_stack.h"

namespace uiw::shake {
namespace {

namespace fake = faults::fake;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kDepth = 2;  // of send queues

// What waited in the fake queue when it was armed last: an adapter would raise an event of that.
size_t waiting_at_arming;

class ShakenVerbs : public testing::Test {
 protected:
  ShakenVerbs() {
    behind_.cq_arm = [](uiwarp_cq* cq, int) {
      waiting_at_arming = fake::of(cq).completions.size();
      return 0;
    };
    behind_.cq_waiting = [](uiwarp_cq* cq, uint32_t* messages) {
      *messages = 0;
      return static_cast<uint32_t>(fake::of(cq).completions.size());
    };
    behind_.context_events_taken = [](uiwarp_context*, int) {};
  }
  void begin(uint64_t seed, const char* liberties = "") {
    end();
    ASSERT_EQ(make_table((std::to_string(seed) + liberties).c_str(), &behind_, &verbs_), 0);
    int actual = 0;
    for (uiwarp_cq** const cq : {&sends_, &receives_})
      ASSERT_EQ(verbs_->cq_create(context(), 64, -1, 0, nullptr, nullptr, cq, &actual), 0);
    qp_ = make_qp();
  }
  void end() {
    if (!qp_) return;
    uint32_t events;
    EXPECT_EQ(verbs_->qp_destroy(qp_, &events), 0);
    EXPECT_EQ(verbs_->cq_destroy(sends_, &events, &events), 0);
    EXPECT_EQ(verbs_->cq_destroy(receives_, &events, &events), 0);
    qp_ = nullptr;
  }
  void TearDown() override { end(); }

  static uiwarp_context* context() { return reinterpret_cast<uiwarp_context*>(&waiting_at_arming); }
  uiwarp_qp* make_qp() {
    uiwarp_qp_init init{};
    init.send_cq = sends_;
    init.recv_cq = receives_;
    init.cap.max_send_wr = kDepth;
    uiwarp_qp* qp = nullptr;
    uint32_t number = 0;
    EXPECT_EQ(verbs_->qp_create(nullptr, &init, &qp, &number), 0);
    return qp;
  }
  std::vector<uint64_t> poll(uiwarp_cq* cq) {
    std::vector<ibv_wc> all(32);
    const int count = verbs_->cq_poll(cq, 32, all.data());
    EXPECT_GE(count, 0);
    std::vector<uint64_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(all[static_cast<size_t>(i)].wr_id);
    return ids;
  }
  // Receives until one is held, under the first seed that holds one.
  void hold_one() {
    for (uint64_t seed = 1;; ++seed) {
      begin(seed);
      fake::receive(fake::of(qp_), 1);
      if (poll(receives_).empty()) return;
    }
  }

  uiwarp_verbs behind_ = fake::table();
  const uiwarp_verbs* verbs_ = nullptr;
  uiwarp_cq *sends_ = nullptr, *receives_ = nullptr;
  uiwarp_qp* qp_ = nullptr;
};

TEST_F(ShakenVerbs, WhatIsHeldComesByItselfToWhoPolls) {
  hold_one();
  std::vector<uint64_t> ids;
  const core::Nanoseconds limit = core::now() + 60 * core::kSecond;
  while (ids.empty() && core::now() < limit) ids = poll(receives_);
  EXPECT_THAT(ids, ElementsAre(1));
}

TEST_F(ShakenVerbs, WhoArmsFindsWhatWasHeldBehindIt) {
  hold_one();
  fake::receive(fake::of(qp_), 2);
  EXPECT_EQ(verbs_->cq_arm(receives_, 0), 0);
  EXPECT_THAT(poll(receives_), ElementsAre(1, 2));
}

TEST_F(ShakenVerbs, WhoArmsForLongKeepsNobodyFromPolling) {
  static std::atomic<bool> is_arming, may_end;
  is_arming = may_end = false;
  behind_.cq_arm = [](uiwarp_cq*, int) {
    is_arming = true;
    while (!may_end) std::this_thread::yield();
    return 0;
  };
  begin(1);
  std::thread arms([&] { EXPECT_EQ(verbs_->cq_arm(receives_, 0), 0); });
  while (!is_arming) std::this_thread::yield();
  std::atomic<bool> has_polled{false};
  std::thread polls([&] {
    fake::receive(fake::of(qp_), 1);
    EXPECT_THAT(poll(receives_), ElementsAre(1));
    has_polled = true;
  });
  const core::Nanoseconds limit = core::now() + 10 * core::kSecond;
  while (!has_polled && core::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(has_polled);
  may_end = true;
  arms.join();
  polls.join();
}

TEST_F(ShakenVerbs, UnderSomeSeedsWhatCameBeforeTheArmingHasNoEvent) {
  bool with = false, without = false;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    begin(seed);
    fake::receive(fake::of(qp_), 1);
    EXPECT_EQ(verbs_->cq_arm(receives_, 0), 0);
    (waiting_at_arming ? with : without) = true;
    EXPECT_THAT(poll(receives_), ElementsAre(1)) << seed;
  }
  EXPECT_TRUE(with && without);
}

TEST_F(ShakenVerbs, AnAsynchronousEventShowsWhatIsThere) {
  hold_one();
  verbs_->context_events_taken(nullptr, 1);
  verbs_->context_events_taken(context(), 0);
  verbs_->context_events_taken(context(), 1);
  fake::receive(fake::of(qp_), 2);
  EXPECT_THAT(poll(receives_), ElementsAre(1, 2));
}

TEST_F(ShakenVerbs, WhatIsHeldWaits) {
  hold_one();
  fake::receive(fake::of(qp_), 2);
  uint32_t messages = 0;
  EXPECT_EQ(verbs_->cq_waiting(receives_, &messages), 2u);
  EXPECT_EQ(messages, 1u);
}

TEST_F(ShakenVerbs, CompletionsOfAQueuePairThatWentAreNotGiven) {
  hold_one();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE), 0);
  uint32_t messages = 0;
  EXPECT_EQ(verbs_->cq_waiting(receives_, &messages), 0u);
  uiwarp_qp* const other = make_qp();
  fake::receive(fake::of(other), 7);
  poll(receives_);
  uint32_t events;
  EXPECT_EQ(verbs_->qp_destroy(other, &events), 0);
  EXPECT_EQ(verbs_->cq_waiting(receives_, &messages), 0u);
  EXPECT_THAT(poll(receives_), IsEmpty());
}

TEST_F(ShakenVerbs, APlaceIsFreeWhenTheProgramWasGivenTheCompletion) {
  begin(1);
  ibv_send_wr list[3] = {};
  for (ibv_send_wr& wr : list) wr.send_flags = IBV_SEND_SIGNALED;
  list[0].next = &list[1];
  list[1].next = &list[2];
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(verbs_->qp_post_send(qp_, list, &bad), ENOMEM);
  EXPECT_EQ(bad, &list[2]);
  EXPECT_EQ(list[1].next, &list[2]);
  EXPECT_EQ(fake::of(qp_).posted.size(), kDepth);
  fake::complete_sends(fake::of(qp_));
  EXPECT_EQ(verbs_->qp_post_send(qp_, &list[2], &bad), ENOMEM);
  const core::Nanoseconds limit = core::now() + 60 * core::kSecond;
  for (size_t given = 0; given < kDepth && core::now() < limit;) given += poll(sends_).size();
  EXPECT_EQ(verbs_->qp_post_send(qp_, &list[2], &bad), 0);
}

TEST_F(ShakenVerbs, AListIsNotWrittenTo) {
  begin(1);
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const list = new (page) ibv_send_wr[kDepth + 1]{};
  for (uint32_t i = 0; i < kDepth; ++i) list[i].next = &list[i + 1];
  ASSERT_EQ(mprotect(page, size, PROT_READ), 0);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(verbs_->qp_post_send(qp_, &list[kDepth], &bad), 0);
  EXPECT_EQ(verbs_->qp_post_send(qp_, list, &bad), ENOMEM);
  EXPECT_EQ(bad, &list[kDepth - 1]);
  munmap(page, size);
}

TEST_F(ShakenVerbs, AQueuePairInErrorTakesWhatTheStackTakes) {
  begin(1);
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  for (uint32_t i = 0; i < kDepth; ++i) EXPECT_EQ(verbs_->qp_post_send(qp_, &wr, &bad), 0);
  EXPECT_EQ(verbs_->qp_post_send(qp_, &wr, &bad), ENOMEM);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE), 0);
  const core::Nanoseconds limit = core::now() + 60 * core::kSecond;
  while (poll(sends_).empty() && core::now() < limit) {
  }
  EXPECT_EQ(verbs_->qp_post_send(qp_, &wr, &bad), 0);
}

TEST_F(ShakenVerbs, WithoutFullTheStackCountsPlaces) {
  begin(1, ",without=full");
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  for (uint32_t i = 0; i <= kDepth; ++i) EXPECT_EQ(verbs_->qp_post_send(qp_, &wr, &bad), 0);
}

TEST_F(ShakenVerbs, ASeedThatIsNoneGivesNoTable) {
  const uiwarp_verbs* table = nullptr;
  EXPECT_EQ(make_table("x", &behind_, &table), ENOTSUP);
  EXPECT_EQ(table, nullptr);
}

}  // namespace
}  // namespace uiw::shake
