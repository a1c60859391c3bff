// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whole lives of connections by seed: work in both directions, and at some moment one of the ways
// in which a connection ends. Whichever it is, every work request completes once, in order, what
// was delivered is what was sent, and the end is told once, behind everything else.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "sim/media.h"

namespace uiw::test {
namespace {

constexpr size_t kSize = 3000;

// One side's program, with memory that the peer may write to and read.
class Side {
 public:
  Side(End& me, uint32_t seed)
      : random_(seed),
        source(me.memory, pattern(kSize, seed)),
        target(me.memory, kSize),
        counter(me.memory, 8),
        me_(me) {}

  void post_something(const Side& peer) {
    const auto size = static_cast<uint32_t>(random_() % kSize);
    switch (random_() % 6) {
      case 0:
        return post_receive();
      case 1: {
        const ibv_sge part{source.start(), size, source.stag()};
        const bool immediate = me_.options.immediates && size % 2;
        const size_t number = sends;
        if (post(SendWr(immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, {part}, number)
                     .immediate(static_cast<uint32_t>(number))))
          messages_.push_back({number, immediate});
        return;
      }
      case 2:
        post(SendWr(IBV_WR_RDMA_WRITE, {{source.start(), size, source.stag()}}, sends)
                 .to(peer.target.start(), peer.target.stag()));
        return;
      case 3:
        return post_read(peer, size);
      case 4: {
        Buffer& sink = *sinks_.emplace_back(std::make_unique<Buffer>(me_.memory, 8));
        post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {sink.sge()}, sends)
                 .atomic(peer.counter.start(), peer.counter.stag(), 1));
        return;
      }
      case 5:
        post(SendWr(IBV_WR_RDMA_WRITE, {}, sends));
        return;
    }
  }
  // Many that follow each other without a pause: what may be deferred or coalesced is.
  void post_burst(const Side& peer) {
    for (size_t i = 9 + random_() % 20; i > 0; --i) {
      if (random_() % 4 == 0)
        post_read(peer, 8);
      else
        post(SendWr(IBV_WR_RDMA_WRITE, {{source.start(), 8, source.stag()}}, sends)
                 .to(peer.target.start(), peer.target.stag()));
    }
  }
  void post_receive() {
    Buffer& into = *receives_.emplace_back(std::make_unique<Buffer>(me_.memory, kSize));
    if (me_.receive(RecvWr({into.sge()}, receives)) == 0) ++receives;
  }
  // Nobody allowed it. False when the queue is full.
  bool post_forbidden(const Side& peer) {
    return post(SendWr(IBV_WR_RDMA_WRITE, {{source.start(), 10, source.stag()}}, sends)
                    .to(peer.target.start(), peer.target.stag() ^ 0x100));
  }

  // What must be true when it has ended.
  void check(const Side& peer, bool peer_was_seen) {
    const auto sent = me_.sent(), received = me_.received();
    ASSERT_EQ(sent.size(), sends);
    ASSERT_EQ(received.size(), receives);
    expect_an_end(sent);
    expect_an_end(received);
    for (const Read& read : reads_) {
      if (sent[read.number].status == IBV_WC_SUCCESS)
        EXPECT_EQ(first(*read.sink, read.size), first(peer.source, read.size));
    }
    for (size_t i = 0; i < received.size() && received[i].status == IBV_WC_SUCCESS; ++i) {
      EXPECT_EQ(first(*receives_[i], received[i].byte_len),
                first(peer.source, received[i].byte_len));
      const Message& message = peer.messages_.at(i);
      ASSERT_EQ(received[i].wc_flags, message.immediate ? unsigned{IBV_WC_WITH_IMM} : 0u);
      if (message.immediate) EXPECT_EQ(ntohl(received[i].imm_data), message.number);
    }
    if (peer_was_seen && me_.options.acknowledged) expect_delivered(sent, peer.me_.received());
    const auto notices = me_.notices();
    ASSERT_FALSE(notices.empty());
    EXPECT_EQ(std::count_if(notices.begin(), notices.end(),
                            [](const Notice& n) { return n.kind == Notice::kEnded; }),
              1);
    EXPECT_EQ(notices.back().kind, Notice::kEnded);
  }

 private:
  struct Read {
    size_t number;
    uint32_t size;
    Buffer* sink;
  };
  struct Message {
    size_t number;
    bool immediate;
  };

  static Octets first(const Buffer& buffer, size_t size) {
    Octets content = buffer.content();
    content.resize(size);
    return content;
  }
  // A Send that completed well has completed a receive.
  void expect_delivered(const std::vector<ibv_wc>& sent, const std::vector<ibv_wc>& received) {
    const auto good = [](const ibv_wc& wc) { return wc.status == IBV_WC_SUCCESS; };
    EXPECT_LE(std::count_if(messages_.begin(), messages_.end(),
                            [&](const Message& m) { return good(sent[m.number]); }),
              std::count_if(received.begin(), received.end(), good));
  }
  // The one that is to blame may have others before it that were not answered yet.
  static void expect_an_end(const std::vector<ibv_wc>& completions) {
    expect_in_order(completions);
    size_t failed = 0, blamed = 0;
    for (const ibv_wc& wc : completions) {
      if (wc.status == IBV_WC_SUCCESS) ASSERT_EQ(failed, 0u);
      failed += wc.status != IBV_WC_SUCCESS;
      blamed += wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR;
    }
    EXPECT_LE(blamed, 1u) << testing::PrintToString(statuses(completions));
  }
  void post_read(const Side& peer, uint32_t size) {
    Buffer& sink = *sinks_.emplace_back(std::make_unique<Buffer>(me_.memory, kSize));
    if (post(SendWr(IBV_WR_RDMA_READ, {{sink.start(), size, sink.stag()}}, sends)
                 .to(peer.source.start(), peer.source.stag())))
      reads_.push_back({sends - 1, size, &sink});
  }
  bool post(SendWr wr) {
    const bool posted = me_.post(std::move(wr)) == 0;
    sends += posted;
    return posted;
  }

  std::mt19937 random_;

 public:
  size_t sends = 0, receives = 0;
  Buffer source, target, counter;

 private:
  End& me_;
  std::vector<Read> reads_;
  std::vector<Message> messages_;
  std::vector<std::unique_ptr<Buffer>> sinks_, receives_;
};

class Life : public Behaviour {
 protected:
  void live(uint32_t seed);
};

void Life::live(uint32_t seed) {
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  EndOptions first{.depth = 64}, second{.depth = 64};
  first.ird = static_cast<uint16_t>(1 + random() % 16);
  second.ord = static_cast<uint16_t>(1 + random() % 16);
  first.acknowledged = random() % 2;
  second.acknowledged = random() % 2;
  // A Send with immediate to a peer that does not take it is an end of its own.
  first.immediates = random() % 2;
  second.immediates = random() % 8 ? first.immediates : !first.immediates;
  connect(first, second);
  Side one(*a, random()), other(*b, random());
  const auto work = [&](size_t steps) {
    for (size_t i = 0; i < steps; ++i) {
      const bool first_posts = random() % 2;
      Side &side = first_posts ? one : other, &peer = first_posts ? other : one;
      if (random() % 8 == 0) {
        side.post_burst(peer);
        // Or it goes on to be deferred and coalesced.
        if (random() % 2 == 0) (first_posts ? a : b)->return_lease();
      } else {
        side.post_something(peer);
      }
      if (random() % 4 == 0) {
        size_t turns = random() % 20;
        world->run_until([&] { return turns-- == 0; });
      }
    }
  };
  for (size_t i = random() % 30; i > 0; --i) (i % 2 ? one : other).post_receive();
  work(random() % 40);
  bool destroyed = false;
  const unsigned way = random() % 10;
  const core::Nanoseconds before = core::now();
  switch (way) {
    case 0:
      a->disconnect();
      break;
    case 1:
      b->disconnect();
      break;
    case 2:
      a->disconnect();
      b->disconnect();
      break;
    case 3:
      a->to_error();
      break;
    case 4:
      b->to_error();
      break;
    case 5:
      a->reset_connection();
      break;
    case 6:
      b->half_close();
      break;
    case 7:
      // A full queue has room when completions were polled.
      EXPECT_TRUE(run_until([&] {
        a->collect();
        b->collect();
        return one.post_forbidden(other);
      }));
      break;
    case 8:
      if (world->can_corrupt()) world->corrupt_once();
      work(5);
      a->disconnect();
      break;
    case 9:
      destroyed = true;
      a->destroy();
      break;
  }
  if (!destroyed) work(random() % 10);
  // A Send that found no receive waits for a minute, which passes at once in the simulator only.
  const bool has_receives = is_tcp() || seed % 2;
  for (size_t i = has_receives ? 60 : 0; i > 0; --i) {
    if (!destroyed) one.post_receive();
    other.post_receive();
  }
  // Otherwise a drain may have had its time while the receives were missing.
  const bool in_time = core::now() - before < core::kSecond;
  const bool ended = run_until([&] {
    a->collect();
    b->collect();
    return (destroyed || a->ended()) && b->ended();
  });
  ASSERT_TRUE(ended);
  // Nobody had to wait for time to pass.
  if (way <= 2 && has_receives && in_time) {
    EXPECT_NE(a->end_error(), ETIMEDOUT);
    EXPECT_NE(b->end_error(), ETIMEDOUT);
  }
  if (!destroyed) one.check(other, true);
  other.check(one, !destroyed);
}

TEST_P(Life, EndsInOrderHoweverItEnds) {
  if (!is_tcp()) return live(GetParam().seed);
  for (uint32_t seed = 1; seed <= 100 && !HasFatalFailure(); ++seed) live(seed);
}

}  // namespace

UIWARP_EVERYWHERE(Life, 25);

}  // namespace uiw::test
