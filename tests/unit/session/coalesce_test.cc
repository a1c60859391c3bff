// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Reads that are coalesced behind others: they go when nothing else comes, whoever stops polling,
// and whatever happens to the connection. Which of them may be left: qp/coalesce_test.cc.
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <atomic>
#include <deque>
#include <thread>

#include "support/host.h"

namespace uiw::test {
namespace {

constexpr size_t kRequest = 52, kSend = 24, kPayload = 8;  // octets: of the first two on the wire

class Untold final : public queue::CompletionEvents {
 public:
  void on_completion_event() override {}
  void on_overflow() override {}
};

class Coalescing : public testing::Test {
 protected:
  // Until pollers receive. The engine's pace decides when, hence the loop.
  void start() {
    TearDown();
    const SocketEnds ends = connect_sockets();
    peer = std::make_unique<RawPeer>(ends.theirs);
    host = std::make_unique<Host>(*engine,
                                  HostOptions{.initiator = true, .ord = 32, .cq_events = &events});
    sink = std::make_unique<Buffer>(host->memory, kPayload);
    ASSERT_EQ(host->attach(ends.ours), 0);
    requests.clear();
    posted = 0;
    completed.clear();
    ASSERT_TRUE(wait_until([&] {
      const uint64_t before = engine->counters().receives.load();
      post();
      for (int i = 0; i < 100; ++i) poll();
      take(1);
      answer_all();
      return engine->counters().receives.load() == before || HasFatalFailure();
    }));
  }
  void TearDown() override {
    if (host) host->destroy();
    sink.reset();
    host.reset();
  }
  void post() {
    ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_READ, {sink->sge()}, posted).to(0x1000, 1)), 0);
    ++posted;
  }
  void poll() {
    ibv_wc wc;
    while (host->send_cq->poll(1, &wc) == 1) completed.push_back(wc);
  }
  // Octets that have come to the peer and were not taken.
  size_t arrived() {
    int octets = 0;
    EXPECT_EQ(ioctl(peer->fd(), FIONREAD, &octets), 0);
    return static_cast<size_t>(octets);
  }
  // Waits for them.
  void take(size_t count) {
    const Octets got = peer->receive(count * kRequest);
    ASSERT_EQ(got.size(), count * kRequest);
    for (Octets& ulpdu : ulpdus_of(got)) requests.push_back(std::move(ulpdu));
  }
  void answer_all() {
    for (; !requests.empty(); requests.pop_front())
      ASSERT_TRUE(peer->send(response_to(requests.front(), Octets(kPayload))));
    ASSERT_TRUE(wait_until([&] { return poll(), completed.size() == posted; }));
  }
  // `count` on their way, all with the peer.
  void outstanding(size_t count) {
    for (size_t i = 0; i < count; ++i) post();
    ASSERT_TRUE(wait_until([&] { return poll(), arrived() == count * kRequest; }));
    take(count);
  }

  Untold events;
  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
  std::unique_ptr<Host> host;
  std::unique_ptr<RawPeer> peer;
  std::unique_ptr<Buffer> sink;
  std::deque<Octets> requests;
  size_t posted = 0;
  std::vector<ibv_wc> completed;
};

// The engine may have taken the queue pair back meanwhile, hence the loop.
TEST_F(Coalescing, OneBesideManyWaitsForAPollThatFindsNothing) {
  EXPECT_TRUE(wait_until([&] {
    start();
    outstanding(8);
    post();
    const bool left = arrived() == 0;
    EXPECT_TRUE(wait_until([&] { return poll(), arrived() == kRequest; }));
    take(1);
    answer_all();
    return left || HasFailure();
  }));
}

TEST_F(Coalescing, NothingIsLeftWhenPollsCease) {
  for (const size_t count : {1u, 5u, 9u, 32u}) {
    SCOPED_TRACE(count);
    start();
    for (size_t i = 0; i < count; ++i) post();
    take(count);
    answer_all();
  }
}

TEST_F(Coalescing, WhoSleepsHasSentEverything) {
  for (int round = 0; round < 3; ++round) {
    start();
    outstanding(8);
    post();
    host->send_cq->arm(false);
    take(1);
  }
}

// Polls go on, but always find something: none of them receives, or sends what was left.
TEST_F(Coalescing, TheEngineSendsWhatLiesTooLong) {
  start();
  outstanding(8);
  Stranger stranger;
  host->send_cq->push(stranger.completion(), false);
  post();
  const Finder finder(*host->send_cq);
  take(1);
}

TEST_F(Coalescing, ASendTakesThemAlong) {
  start();
  outstanding(12);
  post();
  ASSERT_EQ(host->post(SendWr(IBV_WR_SEND)), 0);
  EXPECT_TRUE(wait_until([&] { return arrived() == kRequest + kSend; }));
}

TEST_F(Coalescing, AnEndMeetsThem) {
  for (const Host::Ending how : Host::kEndings) {
    SCOPED_TRACE(static_cast<int>(how));
    start();
    outstanding(8);
    post();
    host->end_by(how);
    if (how == Host::Ending::kDisconnect) {  // what is posted still goes out
      take(1);
      answer_all();
    }
    peer->close();
    if (how == Host::Ending::kError)
      EXPECT_TRUE(wait_until([&] { return poll(), completed.size() == posted; }));
    host->destroy();
  }
}

TEST_F(Coalescing, SeveralThreadsPost) {
  start();
  constexpr size_t kEach = 5000;
  const size_t before = completed.size();
  std::thread answering([&] {
    for (size_t i = 0; i < 2 * kEach; ++i) {
      const Octets request = peer->receive(kRequest);
      ASSERT_EQ(request.size(), kRequest);
      ASSERT_TRUE(peer->send(response_to(ulpdus_of(request).at(0), Octets(kPayload))));
    }
  });
  const auto post_all = [&] {
    for (size_t i = 0; i < kEach; ++i)
      ASSERT_TRUE(wait_until(
          [&] { return host->post(SendWr(IBV_WR_RDMA_READ, {sink->sge()}).to(0x1000, 1)) == 0; }));
  };
  std::thread one(post_all), two(post_all);
  EXPECT_TRUE(wait_until([&] { return poll(), completed.size() == before + 2 * kEach; }));
  one.join();
  two.join();
  answering.join();
  for (const ibv_wc& wc : completed) ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace uiw::test
