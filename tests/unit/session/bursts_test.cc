// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Posts that are deferred to be sent together: all of them come to the peer, whatever the program
// does behind them, and whatever happens to the connection.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/in_child.h"
#include "unit/session/leased.h"

namespace uiw::test {
namespace {

class Bursts : public Leased {
 protected:
  // Posts `count` as fast as it goes and polls when `every` of them were posted.
  void burst(int count, int every) {
    ibv_wc wc;
    for (int i = 1; i <= count; ++i) {
      ASSERT_TRUE(wait_until([&] {
        const int error = host->post(SendWr(IBV_WR_SEND, {}, ++id));
        if (error == 0) return true;
        EXPECT_EQ(error, ENOMEM);
        --id;
        while (host->send_cq->poll(1, &wc) == 1) completed.push_back(wc);
        return false;
      }));
      if (i % every == 0)
        while (host->send_cq->poll(1, &wc) == 1) completed.push_back(wc);
    }
  }
  void start() {
    Leased::start();
    ASSERT_EQ(host->receive(RecvWr({}, 0)), 0);
    ASSERT_TRUE(peer->send(next_send()));  // opens a responder's side
    ASSERT_TRUE(wait_until([&] { return host->heard(); }));
    id = 0;
    completed.clear();
  }
  // Everything posted comes to the peer, though nobody polls any more.
  void expect_all() {
    const size_t size = 24;
    const Octets got = peer->receive(size * id);
    ASSERT_EQ(got.size(), size * id);
    for (uint32_t i = 0; i < id; ++i)
      ASSERT_EQ(to_hex({got.data() + i * size, size}), to_hex(fpdu(untagged(3, 0, i + 1, 0, {}))));
  }
  uint32_t id = 0;
  std::vector<ibv_wc> completed;
};

TEST_F(Bursts, NothingIsLeftWhenPollsCease) {
  for (int count : {1, 2, 9, 40, 41, 1000, 1001, 5000, 20000}) {
    SCOPED_TRACE(count);
    start();
    std::thread poster([&] { burst(count, 64); });
    poster.join();
    expect_all();
  }
}

// Nor when it was posted on and on, and hardly polled.
TEST_F(Bursts, NothingIsLeftWhenPostsCease) {
  for (int count : {9, 41, 1000, 5001, 20000}) {
    SCOPED_TRACE(count);
    start();
    std::thread poster([&] { burst(count, count + 1); });
    poster.join();
    expect_all();
  }
}

// A program with several queue pairs posts to each by turns, and their posts count together.
TEST_F(Bursts, NothingIsLeftOnEitherOfTwoQueuePairs) {
  start();
  const SocketEnds ends = connect_sockets();
  RawPeer other_peer(ends.theirs);
  Host other(*engine, HostOptions{.initiator = true, .cq_events = &signals});
  ASSERT_EQ(other.attach(ends.ours), 0);
  constexpr size_t kEach = 30, kRounds = 200;
  for (size_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kEach; ++i) {
      ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, ++id)), 0);
      ASSERT_EQ(other.post(SendWr(IBV_WR_SEND)), 0);
    }
    if (round == kRounds) break;  // nobody polls any more
    ASSERT_TRUE(wait_until([&] {
      return host->sent().size() == round * kEach && other.sent().size() == round * kEach;
    }));
  }
  EXPECT_EQ(other_peer.receive(kRounds * kEach * 24).size(), kRounds * kEach * 24);
  expect_all();
}

TEST_F(Bursts, NorAreLargeRequests) {
  for (int count : {1, 2, 3, 4, 5, 9}) {
    SCOPED_TRACE(count);
    start();
    burst(2000, 64);
    const Octets payload(64 * 1024, 7);
    Buffer source(host->memory, payload);
    const SendWr write = SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(0, 1);
    for (int i = 0; i < count; ++i) ASSERT_EQ(host->post(write), 0);
    const size_t size = 2000 * 24 + static_cast<size_t>(count) * payload.size();
    EXPECT_EQ(peer->receive(size).size(), size);
    peer->close();
    host->destroy();
  }
}

// Polls go on, but never find the queue empty: nobody would send what is deferred.
TEST_F(Bursts, TheEngineSendsWhatLiesTooLong) {
  start();
  burst(2000, 64);
  ibv_wc wc{};
  while (host->send_cq->poll(1, &wc) == 1) {
  }
  for (int i = 0; i < 40; ++i) ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, ++id).flags(0)), 0);
  Stranger stranger;
  host->send_cq->push(stranger.completion(wc), false);
  const Finder finder(*host->send_cq);
  expect_all();
}

TEST_F(Bursts, EachCompletesOnceAndInOrder) {
  start();
  Octets all;
  std::thread reader([&] { all = peer->receive(24 * 50000); });
  burst(50000, 48);
  ASSERT_TRUE(wait_until([&] {
    ibv_wc wc;
    while (host->send_cq->poll(1, &wc) == 1) completed.push_back(wc);
    return completed.size() == 50000;
  }));
  reader.join();
  EXPECT_EQ(all.size(), 24u * 50000);
  for (size_t i = 0; i < completed.size(); ++i) {
    ASSERT_EQ(completed[i].wr_id, i + 1);
    ASSERT_EQ(completed[i].status, IBV_WC_SUCCESS);
  }
}

TEST_F(Bursts, WhoSleepsHasSentEverything) {
  for (int round = 0; round < 10; ++round) {
    start();
    burst(3000 + round, 64);
    host->send_cq->arm(false);
    expect_all();
  }
}

// It has the socket and the requests, too: what it sent would come twice.
TEST_F(Bursts, AChildSendsNothingOfWhatIsDeferred) {
  for (int round = 0; round < 5; ++round) {
    start();
    burst(2000, 64);
    for (int i = 0; i < 40; ++i) ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, ++id).flags(0)), 0);
    in_child([&] { return host->post(SendWr(IBV_WR_SEND)) == ENODEV ? 0 : 1; });
    ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, ++id)), 0);
    expect_all();
  }
}

// A post is a doorbell: whatever the program does behind it, everything comes to the peer.
class Doorbell : public Bursts {
 protected:
  // A burst of Sends without completions, behind which nobody polls; then `wait`, until
  // `all_came` and a Write into its argument tell that all of it has come.
  template <class Wait>
  void burst_then(Wait wait) {
    for (int round = 0; round < 10; ++round) {
      SCOPED_TRACE(round);
      start();
      burst(2000, 64);
      Buffer target(host->memory, 8);
      all_came = false;
      for (int i = 0; i < 40; ++i) ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, ++id).flags(0)), 0);
      std::thread answering([&] {
        expect_all();
        all_came = true;
        all_came.notify_all();
        peer->send(fpdu(tagged(0, target.stag(), target.start(), of_text("all came"))));
      });
      wait(target);
      answering.join();
    }
  }
  std::atomic<bool> all_came{false};
};

TEST_F(Doorbell, ThenSpinningOnMemory) {
  burst_then([&](Buffer& target) {
    auto* const seen = reinterpret_cast<uint64_t*>(target.data());
    while (std::atomic_ref<uint64_t>(*seen).load(std::memory_order_acquire) == 0) {
    }
  });
}

TEST_F(Doorbell, ThenSleeping) {
  burst_then([&](Buffer&) { all_came.wait(false); });
}

TEST_F(Doorbell, ThenPollingAnotherQueue) {
  const auto other = queue::CompletionQueue::create(4, &signals);
  burst_then([&](Buffer&) {
    ibv_wc wc;
    while (!all_came) other->poll(1, &wc);
  });
}

TEST_F(Doorbell, ThenArming) {
  burst_then([&](Buffer&) {
    host->send_cq->arm(false);
    all_came.wait(false);
  });
}

TEST_F(Doorbell, ThenNothing) {
  burst_then([](Buffer&) {});
}

TEST_F(Bursts, SeveralThreadsPost) {
  start();
  std::atomic<int> posted{0}, done{0};
  Octets all;
  std::thread reader([&] { all = peer->receive(24 * 20000); });
  const auto post = [&] {
    for (int i = 0; i < 10000; ++i) {
      posted.fetch_add(1);
      // No more than the completion queue holds.
      ASSERT_TRUE(
          wait_until([&] { return posted - done < 2000 && host->post(SendWr(IBV_WR_SEND)) == 0; }));
    }
  };
  std::thread one(post), two(post);
  ASSERT_TRUE(wait_until([&] {
    ibv_wc wc;
    while (host->send_cq->poll(1, &wc) == 1) ++done;
    return done == 20000;
  }));
  one.join();
  two.join();
  reader.join();
  EXPECT_EQ(all.size(), 24u * 20000);
}

TEST_F(Bursts, AnEndMeetsWhatIsDeferred) {
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    start();
    burst(2000, 64);
    if (round % 3 == 0) {
      EXPECT_EQ(host->modify(IBV_QPS_ERR), 0);
      EXPECT_TRUE(wait_until([&] {
        ibv_wc wc;
        while (host->send_cq->poll(1, &wc) == 1) completed.push_back(wc);
        return completed.size() == 2000;
      }));
    } else if (round % 3 == 1) {
      engine->run_sync([&] { host->qp->disconnect(); });  // what is posted still goes out
      expect_all();
    } else {
      host->destroy();
    }
    peer->close();
  }
}

}  // namespace
}  // namespace uiw::test
