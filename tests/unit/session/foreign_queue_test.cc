// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whoever spins on one completion queue receives for queue pairs of others: until he ceases, his
// queue goes, or the connection ends.
#include "progress/busy_poller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "core/be.h"
#include "mpa/framing.h"
#include "support/host.h"

namespace uiw::test {
namespace {

// As a program sees the 8 octets that it waits for, the last ones.
bool holds(Buffer& target, const char* octets) {
  uint64_t wanted;
  std::memcpy(&wanted, octets, sizeof wanted);
  auto* const seen = reinterpret_cast<uint64_t*>(target.data() + target.size() - sizeof wanted);
  return std::atomic_ref<uint64_t>(*seen).load(std::memory_order_acquire) == wanted;
}

// Nobody polls the host's own queues; what comes are Writes.
class Strangers : public testing::Test {
 protected:
  class Offers final : public queue::CompletionEvents {
   public:
    explicit Offers(Strangers& test) : test_(test) {}
    void on_completion_event() override {}
    void on_overflow() override {}
    void on_spinning() override { test_.busy_poller.offer(test_.stranger); }

   private:
    Strangers& test_;
  };

  void start(size_t size = 8) {
    target.reset();
    host.reset();
    stranger = queue::CompletionQueue::create(4, &offers);
    const SocketEnds ends = connect_sockets();
    peer = std::make_unique<RawPeer>(ends.theirs);
    host = std::make_unique<Host>(*engine, HostOptions{.busy_poller = &busy_poller});
    ASSERT_EQ(host->attach(ends.ours), 0);
    target = std::make_unique<Buffer>(host->memory, size);
    count = 0;
    reads = 0;
  }
  void spin(int polls) {
    ibv_wc wc;
    for (int i = 0; i < polls; ++i) EXPECT_EQ(stranger->poll(1, &wc), 0);
  }
  void write() {
    std::snprintf(text, sizeof text, "%08d", ++count);
    const Octets payload = concat(Octets(target->size() - 8), of_text(text));
    ASSERT_TRUE(peer->send(fpdu(tagged(0, target->stag(), target->start(), payload))));
  }
  // A Read, until the last segment of its answer has come (RFC 5041 4.1: L), while they spin: in
  // pieces so small that taking one keeps nobody from polling for long, whatever sanitizer watches.
  void read(Buffer& source) {
    const auto size = static_cast<uint32_t>(source.size());
    ASSERT_TRUE(peer->send(
        fpdu(untagged(1, 1, ++reads, 0, read_request(7, 0, size, source.stag(), source.start())))));
    Octets answer;
    answer.reserve(2 * source.size());
    size_t at = 0;
    ASSERT_TRUE(wait_until([&] {
      spin(1);
      uint8_t some[2048];
      const ssize_t got = ::recv(peer->fd(), some, sizeof some, MSG_DONTWAIT);
      if (got > 0) answer.insert(answer.end(), some, some + got);
      while (at + 3 <= answer.size()) {
        const size_t whole = mpa::fpdu_size(core::load_be16(&answer[at]));
        if (at + whole > answer.size()) break;
        if (answer[at + 2] & 0x40) return true;
        at += whole;
      }
      return false;
    }));
  }
  uint64_t receives() { return engine->counters().receives.load(); }
  // The engine counts when it is done with what came: now it is.
  bool engine_received(uint64_t before) {
    engine->run_sync([] {});
    return receives() != before;
  }
  bool written() { return holds(*target, text); }
  // Until a Write comes without the engine.
  void start_lent(size_t size = 8) {
    start(size);
    ASSERT_TRUE(wait_until([&] {
      const uint64_t before = receives();
      spin(1100);
      write();
      EXPECT_TRUE(wait_until([&] { return spin(1), written(); }));
      return !engine_received(before) || HasFailure();
    }));
  }

  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
  progress::BusyPoller busy_poller;
  Offers offers{*this};
  std::shared_ptr<queue::CompletionQueue> stranger;
  std::unique_ptr<Host> host;
  std::unique_ptr<RawPeer> peer;
  std::unique_ptr<Buffer> target;
  int count = 0;
  uint32_t reads = 0;
  char text[12];
};

TEST_F(Strangers, WhoSpinsElsewhereReceives) {
  start_lent();
}

// With the headers, that is more than 4 KiB.
TEST_F(Strangers, WhoSpinsElsewhereReceivesAPage) {
  start_lent(4096);
}

TEST_F(Strangers, WhoSpinsElsewhereAnswersReads) {
  for (size_t size : {8, 4096, 65536}) {
    SCOPED_TRACE(size);
    start();
    Buffer source(host->memory, size);
    EXPECT_TRUE(wait_until([&] {
      const uint64_t before = receives();
      spin(1100);
      read(source);
      return !engine_received(before) || HasFailure();
    }));
  }
}

// It sleeps until the socket has room.
TEST_F(Strangers, TheEngineAnswersLargeReads) {
  start();
  Buffer source(host->memory, 1 << 20);
  for (int i = 0; i < 100; ++i) {
    const uint64_t before = receives();
    spin(1100);
    read(source);
    ASSERT_TRUE(engine_received(before)) << i;
  }
}

TEST_F(Strangers, TheEngineReceivesWhenTheySpinNoMore) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    write();
    EXPECT_TRUE(wait_until([&] { return written(); }));
  }
}

TEST_F(Strangers, ArmingTheirQueueGivesItToTheEngine) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    stranger->arm(false);
    const uint64_t before = receives();
    write();
    EXPECT_TRUE(wait_until([&] { return written() && receives() > before; }));
  }
}

TEST_F(Strangers, TheirQueueMayGoFirst) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    stranger.reset();
    write();
    EXPECT_TRUE(wait_until([&] { return written(); }));
    EXPECT_EQ(busy_poller.get(), nullptr);
    if (round % 2 == 0) host->destroy();
  }
}

TEST_F(Strangers, EndsBelowThoseWhoSpin) {
  for (Host::Ending how : Host::kEndings) {
    SCOPED_TRACE(static_cast<int>(how));
    start_lent();
    const Spinners spinners(*stranger);
    for (int i = 0; i < 50; ++i) write();
    host->end_by(how);
    peer->receive_all();
    peer->finish();
    if (Host::is_told(how)) EXPECT_TRUE(host->wait_for_end());
    host->destroy();
  }
}

// A queue pair that is silent among busy ones is no business of those who poll.
TEST_F(Strangers, TheSilentOneGoesToTheEngine) {
  start_lent();
  const SocketEnds ends = connect_sockets();
  RawPeer silent_peer(ends.theirs);
  Host silent(*engine, HostOptions{.busy_poller = &busy_poller});
  ASSERT_EQ(silent.attach(ends.ours), 0);
  Buffer silent_target(silent.memory, 8);
  const auto write_to_silent = [&](const char* octets) {
    EXPECT_TRUE(silent_peer.send(
        fpdu(tagged(0, silent_target.stag(), silent_target.start(), of_text(octets)))));
    EXPECT_TRUE(wait_until([&] { return spin(1), holds(silent_target, octets); }));
  };
  const auto exchange = [&] {
    spin(300);
    write();
    EXPECT_TRUE(wait_until([&] { return spin(1), written(); }));
  };
  ASSERT_TRUE(wait_until([&] {  // both are lent
    spin(1100);
    const uint64_t before = receives();
    write_to_silent("silent.1");
    write_to_silent("silent.2");
    exchange();
    return receives() == before || HasFailure();
  }));
  int exchanges = 0;
  EXPECT_TRUE(wait_until([&] {
    for (int i = 0; i < exchanges; ++i) exchange();
    exchanges += 10;
    const uint64_t before = receives();
    exchange();
    if (receives() != before) return HasFailure();  // it was lent just now
    write_to_silent("silent.1");
    write_to_silent("silent.2");
    return receives() > before || HasFailure();
  }));
}

}  // namespace
}  // namespace uiw::test
