// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A stream that is often blocked is sent by whoever spins on its completion queue; and by the
// engine as soon as nobody does.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/processors.h"
#include "ddp/header.h"
#include "mpa/framing.h"
#include "progress/lease.h"
#include "support/host.h"

namespace uiw::test {
namespace {

constexpr uint32_t kSize = 1 << 18;

// Reads Writes that begin at tagged offset 0, and compares them with what was written.
class Reader {
 public:
  Reader(RawPeer& peer, const Octets& content)
      : peer_(peer), content_(content), thread_([this] { run(); }) {}
  ~Reader() {
    paused_ = false;
    shutdown(peer_.fd(), SHUT_RDWR);
    thread_.join();
  }
  // While somebody posts: what is posted is to be more than the sockets hold.
  void pause(bool now) { paused_ = now; }
  uint64_t octets() const { return octets_; }
  int messages() const { return messages_; }
  bool all_right() const { return all_right_; }

 private:
  void run() {
    for (;;) {
      while (paused_) std::this_thread::yield();
      const Octets size = peer_.receive(mpa::kLengthSize);
      if (size.size() < mpa::kLengthSize) return;
      const Octets rest =
          peer_.receive(mpa::fpdu_size(core::load_be16(size.data())) - mpa::kLengthSize);
      if (rest.size() < ddp::kTaggedHeaderSize) return;
      const uint32_t payload = core::load_be16(size.data()) - ddp::kTaggedHeaderSize;
      const uint64_t to = core::load_be64(rest.data() + 6);
      octets_ += payload;
      if (to + payload > content_.size() ||
          std::memcmp(content_.data() + to, rest.data() + ddp::kTaggedHeaderSize, payload) != 0)
        all_right_ = false;
      // An initiator wakes a silent peer by empty ones. RFC 5041 4.1: the Last flag.
      if (payload > 0 && (rest[0] & 0x40)) ++messages_;
    }
  }

  RawPeer& peer_;
  const Octets& content_;
  std::atomic<bool> paused_{false};
  std::atomic<uint64_t> octets_{0};
  std::atomic<int> messages_{0};
  std::atomic<bool> all_right_{true};
  std::thread thread_;
};

class PollerSends : public testing::Test {
 protected:
  void start() {
    stop();
    const SocketEnds ends = connect_sockets();
    // So that what the sockets hold is less than what is posted.
    const int window = 64 * 1024;
    ASSERT_EQ(setsockopt(ends.theirs, SOL_SOCKET, SO_RCVBUF, &window, sizeof window), 0);
    peer = std::make_unique<RawPeer>(ends.theirs);
    host = std::make_unique<Host>(*engine, HostOptions{.initiator = true, .cq_events = &signals});
    ASSERT_EQ(host->attach(ends.ours), 0);
    reader = std::make_unique<Reader>(*peer, content);
    source = std::make_unique<Buffer>(host->memory, content);
    posted = 0;
  }
  void stop() {
    reader.reset();
    if (host) host->destroy();
    source.reset();
    host.reset();
  }
  void TearDown() override { stop(); }
  void post(
      int count, const std::function<void()>& after_each = [] {}) {
    reader->pause(true);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_WRITE, {source->sge()}, posted++).to(0, 1)), 0);
      after_each();
    }
    reader->pause(false);
  }
  // Much, completed while the engine stands still. False: it was needed. Polls all the time, or the
  // engine would take the queue pair back.
  bool completes_without_engine() {
    constexpr int kCount = 40;
    int done = 0;
    const auto poll = [&] {
      ibv_wc wc;
      while (host->send_cq->poll(1, &wc) == 1) ++done;
    };
    std::atomic<bool> stands{false}, runs{false};
    std::binary_semaphore go{0};
    std::thread stopper([&] {
      engine->run_sync([&] {
        stands = true;
        go.acquire();
      });
      runs = true;
    });
    while (!stands) poll();
    post(kCount);
    // Until the reader has had nothing to read for long: whoever would send then stands still.
    uint64_t read = 0;
    for (core::Nanoseconds since = core::now(); done < kCount;) {
      poll();
      if (std::exchange(read, reader->octets()) != read) {
        since = core::now();
      } else if (core::now() - since > 300 * core::kMillisecond) {
        break;
      }
    }
    const bool all = done == kCount;
    go.release();
    while (!runs || done < kCount) poll();
    stopper.join();
    return all;
  }
  // Streams that are blocked make whoever spins the sender; this is more often than it takes.
  void be_blocked() {
    constexpr int kRounds = 6, kCount = 40;
    ibv_wc wc;
    for (int round = 0; round < kRounds; ++round) {
      post(kCount);
      for (int done = 0; done < kCount;) done += host->send_cq->poll(1, &wc);
    }
  }
  void start_as_member() {
    start();
    be_blocked();
    // The scheduler may be against it; what is asked afterwards holds in any case.
    for (int tries = 3; tries > 0 && !HasFatalFailure() && !completes_without_engine();) --tries;
  }
  bool peer_has_all() {
    return wait_until([&] { return reader->messages() == posted; }) && reader->all_right();
  }

  struct Signals final : queue::CompletionEvents {
    void on_completion_event() override {}
    void on_overflow() override {}
  } signals;
  const Octets content = pattern(kSize);
  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
  std::unique_ptr<Host> host;
  std::unique_ptr<RawPeer> peer;
  std::unique_ptr<Buffer> source;
  std::unique_ptr<Reader> reader;
  int posted = 0;
};

TEST_F(PollerSends, WhoPollsSends) {
#ifdef __SANITIZE_THREAD__
  start_as_member();  // a poller so slow may be given up again and again
#else
  start();
  const auto sent_by_poller = [&] {
    be_blocked();
    return completes_without_engine();
  };
  if (!wait_until([&] { return sent_by_poller() || HasFatalFailure(); })) {
    ASSERT_TRUE(core::processors_are_short());
    GTEST_SKIP() << "other programs keep the processors busy: nobody gets to spin";
  }
#endif
  EXPECT_TRUE(peer_has_all());
}

TEST_F(PollerSends, TheEngineSendsWhenPollsCease) {
  for (int round = 0; round < 2; ++round) {
    start_as_member();
    post(40);
    EXPECT_TRUE(peer_has_all());
  }
}

TEST_F(PollerSends, ArmingTheQueueGivesItToTheEngine) {
  for (int round = 0; round < 2; ++round) {
    start_as_member();
    post(40);
    ibv_wc wc;
    for (int i = 0; i < 10; ++i) host->send_cq->poll(1, &wc);
    host->send_cq->arm(false);
    EXPECT_TRUE(peer_has_all());
  }
}

// Polls go on, but never in vain: no poller would go on sending.
TEST_F(PollerSends, TheEngineSendsWhereTheQueueIsNeverEmpty) {
  start_as_member();
  Stranger stranger;
  const auto find_something = [&] {
    ibv_wc wc;
    host->send_cq->push(stranger.completion(), false);
    return host->send_cq->poll(1, &wc) == 1;
  };
  for (int i = 0; i < 4; ++i) host->send_cq->push(stranger.completion(), false);
  post(40, [&] { EXPECT_TRUE(find_something()); });
  EXPECT_TRUE(wait_until([&] { return !find_something() || reader->messages() == posted; }));
  EXPECT_TRUE(peer_has_all());
}

TEST_F(PollerSends, EndsBelowThosePolling) {
  for (Host::Ending how : Host::kEndings) {
    SCOPED_TRACE(static_cast<int>(how));
    start_as_member();
    const Spinners spinners(*host->send_cq);
    post(40);
    host->end_by(how);
    const bool orderly = how == Host::Ending::kDisconnect;
    if (orderly) EXPECT_TRUE(peer_has_all());
    reader.reset();
    if (orderly) {
      peer->close();
    } else {
      peer->reset();  // at once, and not at TCP's next probe of a closed window
    }
    if (Host::is_told(how)) EXPECT_TRUE(host->wait_for_end());
    host->destroy();
  }
}

TEST_F(PollerSends, ThePeerEndsBelowThosePolling) {
  start_as_member();
  const Spinners spinners(*host->send_cq);
  post(40);
  shutdown(peer->fd(), SHUT_RDWR);
  reader.reset();
  peer->reset();
  EXPECT_TRUE(host->wait_for_end());
  host->destroy();
}

}  // namespace
}  // namespace uiw::test
