// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whoever polls in vain receives by himself, and sends what lingers: whatever happens to the
// connection meanwhile, and when the polls cease.
#include "session/poll_group.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "support/host.h"
#include "support/in_child.h"

namespace uiw::test {
namespace {

class Signals final : public queue::CompletionEvents {
 public:
  void on_completion_event() override { count.fetch_add(1); }
  void on_overflow() override {}
  std::atomic<int> count{0};
};

// This thread and the engine share a CPU, so the engine, which sleeps most of the time, comes
// first.
class SharedCpu {
 public:
  explicit SharedCpu(engine::Engine& engine) {
    EXPECT_EQ(sched_getaffinity(0, sizeof all_, &all_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    const auto share = [&] { EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0); };
    share();
    engine.run_sync(share);
  }
  ~SharedCpu() { sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_;
};

class PollGroups : public testing::Test {
 protected:
  void start() {
    host.reset();
    const SocketEnds ends = connect_sockets();
    peer = std::make_unique<RawPeer>(ends.theirs);
    host = std::make_unique<Host>(*engine, HostOptions{.cq_events = &signals});
    ASSERT_EQ(host->attach(ends.ours), 0);
    msn = 0;
    received.clear();
  }
  Octets next_send(const Octets& payload = {}) { return fpdu(untagged(3, 0, ++msn, 0, payload)); }
  // One Send of the peer, for which the queue is polled in vain often before it comes.
  void exchange() {
    ASSERT_EQ(host->receive(RecvWr({}, msn)), 0);
    for (int i = 0; i < 100; ++i) poll();
    ASSERT_TRUE(peer->send(next_send()));
    ASSERT_TRUE(wait_until([&] { return poll(), received.size() == msn; }));
  }
  void poll() {
    ibv_wc wc;
    while (host->recv_cq->poll(1, &wc) == 1) received.push_back(wc);
  }
  // Until a message comes without the engine. Its own pace decides when it looks, hence the loop.
  void start_lent() {
    start();
    ASSERT_TRUE(wait_until([&] {
      const uint64_t before = receives();
      exchange();
      return receives() == before || HasFatalFailure();
    }));
  }
  uint64_t receives() { return engine->counters().receives.load(); }
  // Lets it: false when it does not, because the queue pair is lent. Sharing a CPU it comes with
  // the first of these; all of them must take less than the 50 us after which it notices that
  // nobody polls, and some machines take 0.6 us for each.
  bool engine_receives(uint64_t before) {
    for (int i = 0; i < 16 && receives() == before; ++i) sched_yield();
    return receives() != before;
  }

  Signals signals;
  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
  std::unique_ptr<Host> host;
  std::unique_ptr<RawPeer> peer;
  uint32_t msn = 0;
  std::vector<ibv_wc> received;
};

TEST_F(PollGroups, WhoPollsReceives) {
  start_lent();
  for (const ibv_wc& wc : received) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, static_cast<uint64_t>(&wc - received.data()));
  }
}

// The engine always comes first. Whether messages follow each other soon enough is up to the rest
// of the machine, hence the loop.
TEST_F(PollGroups, WhoFindsEachMessageAtOnceReceives) {
  const SharedCpu shared(*engine);
  start();
  EXPECT_TRUE(wait_until([&] {
    EXPECT_EQ(host->receive(RecvWr({}, msn)), 0);
    const uint64_t before = receives();
    EXPECT_TRUE(peer->send(next_send()));
    const bool lent = !engine_receives(before);
    do {
      poll();
    } while (received.size() < msn);
    return (lent && receives() == before) || HasFailure();
  }));
}

// There is no time to poll between the pieces of a message: the engine takes each at once.
TEST_F(PollGroups, WhoPollsReceivesMessagesInPieces) {
  const SharedCpu shared(*engine);
  start();
  EXPECT_TRUE(wait_until([&] {
    EXPECT_EQ(host->receive(RecvWr({}, msn)), 0);
    for (int i = 0; i < 100; ++i) poll();
    const uint64_t before = receives();
    const Octets octets = next_send();
    EXPECT_TRUE(peer->send(std::span(octets).first(7)));
    const bool lent = !engine_receives(before);
    EXPECT_TRUE(peer->send(std::span(octets).subspan(7)));
    if (!lent) engine_receives(before + 1);
    do {
      poll();
    } while (received.size() < msn);
    return (lent && receives() == before) || HasFailure();
  }));
}

// Their completions are polled, but what comes has none: somebody looks at memory.
TEST_F(PollGroups, WhoOnlyPollsForItsOwnSendsDoesNotReceive) {
  start();
  Buffer target(host->memory, 8);
  for (int round = 0; round < 300; ++round) {
    const uint64_t before = receives();
    ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_WRITE)), 0);
    ASSERT_TRUE(peer->send(fpdu(tagged(0, target.stag(), target.start(), of_text("octets..")))));
    ASSERT_TRUE(wait_until([&] { return receives() > before; }));
    ibv_wc wc;
    host->send_cq->poll(1, &wc);
  }
}

TEST_F(PollGroups, TheEngineReceivesWhenPollsCease) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    Buffer target(host->memory, 8);
    ASSERT_TRUE(peer->send(fpdu(tagged(0, target.stag(), target.start(), of_text("octets..")))));
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());  // polls nothing
    EXPECT_TRUE(target.content() == of_text("octets.."));
  }
}

TEST_F(PollGroups, ArmingTheQueueGivesItToTheEngine) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    const int before = signals.count.load();
    host->recv_cq->arm(false);
    ASSERT_EQ(host->receive(RecvWr()), 0);
    ASSERT_TRUE(peer->send(next_send()));
    EXPECT_TRUE(wait_until([&] { return signals.count.load() == before + 1; }));  // polls nothing
    poll();
    EXPECT_EQ(received.size(), msn);
  }
}

TEST_F(PollGroups, AnEndIsFoundByWhoPolls) {
  for (bool reset : {false, true, false, true}) {
    SCOPED_TRACE(reset);
    start_lent();
    ASSERT_EQ(host->receive(RecvWr({}, 99)), 0);
    if (reset) {
      peer->reset();
    } else {
      peer->finish();
    }
    ASSERT_TRUE(wait_until([&] { return poll(), host->ended(); }));
    poll();
    EXPECT_EQ(host->end_error(), reset ? ECONNRESET : 0);
    EXPECT_EQ(host->events(),
              reset ? std::vector{IBV_EVENT_QP_FATAL} : std::vector<ibv_event_type>{});
    ASSERT_FALSE(received.empty());
    EXPECT_EQ(received.back().wr_id, 99u);
    EXPECT_EQ(received.back().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(host->state(), IBV_QPS_ERR);
  }
}

TEST_F(PollGroups, AFaultIsFoundByWhoPolls) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    Octets damaged = next_send();
    damaged[10] ^= 1;
    ASSERT_TRUE(peer->send(concat(damaged, next_send())));
    // The poller stays at it while the engine deals with the fault.
    std::atomic<bool> over{false};
    std::thread spinner([&] {
      ibv_wc wc;
      while (!over) host->recv_cq->poll(1, &wc);
    });
    const std::vector<Octets> said = ulpdus_of(peer->receive_all());
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(said[0][1] & 0xf, 7);  // Terminate
    peer->finish();
    EXPECT_TRUE(host->wait_for_end());
    over = true;
    spinner.join();
    EXPECT_EQ(host->end_error(), EPROTO);
    EXPECT_EQ(host->events(), std::vector{IBV_EVENT_QP_FATAL});
  }
}

// Two threads poll; the queue pair changes state or goes away below them.
TEST_F(PollGroups, EndsBelowThosePolling) {
  for (int round = 0; round < 2; ++round) {
    for (Host::Ending how : Host::kEndings) {
      SCOPED_TRACE(static_cast<int>(how));
      start_lent();
      const Spinners spinners(*host->recv_cq);
      for (int i = 0; i < 50; ++i) ASSERT_EQ(host->receive(RecvWr({}, 1)), 0);
      for (int i = 0; i < 50; ++i) peer->send(next_send());
      host->end_by(how);
      peer->receive_all();
      peer->finish();
      if (Host::is_told(how)) EXPECT_TRUE(host->wait_for_end());
      host->destroy();
    }
  }
}

TEST_F(PollGroups, ASendWaitsForItsReceive) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    const Octets first = next_send();
    ASSERT_TRUE(peer->send(concat(first, next_send())));
    for (int i = 0; i < 1000; ++i) poll();  // whoever receives it finds no receive
    ASSERT_EQ(host->receive(RecvWr({}, 1)), 0);
    ASSERT_EQ(host->receive(RecvWr({}, 2)), 0);
    ASSERT_TRUE(wait_until([&] { return poll(), received.size() == msn; }));
    EXPECT_EQ(received.back().wr_id, 2u);
    EXPECT_EQ(received.back().status, IBV_WC_SUCCESS);
    EXPECT_FALSE(host->ended());
  }
}

// --- what lingers ---

class Bursts : public PollGroups {
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
    PollGroups::start();
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

// Polls go on, but never find the queue empty: nobody would send what lingers.
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
TEST_F(Bursts, AChildSendsNothingOfWhatLingers) {
  for (int round = 0; round < 5; ++round) {
    start();
    burst(2000, 64);
    for (int i = 0; i < 40; ++i) ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, ++id).flags(0)), 0);
    in_child([&] { return host->post(SendWr(IBV_WR_SEND)) == ENODEV ? 0 : 1; });
    ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, ++id)), 0);
    expect_all();
  }
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

TEST_F(Bursts, AnEndMeetsWhatLingers) {
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
