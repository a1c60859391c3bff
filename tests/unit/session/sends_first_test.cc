// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What answers a request is completed after it: also when the thread that sent it has lost its CPU
// between sendmsg() and completing it. doc/protocol.md, "Order that programs can rely on".
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <semaphore>

#include "support/host.h"

namespace uiw::test {
namespace {

// Of two Sends that went together the first one's completion is told, by the thread that sent them,
// while TCP has both: there it is held. Events go to whoever armed, once.
class HeldSender final : public queue::CompletionEvents {
 public:
  void on_completion_event() override {
    held_.release();
    go_on_.acquire();
  }
  void on_overflow() override {}
  void wait_until_held() { held_.acquire(); }
  void let_go() { go_on_.release(); }

 private:
  std::binary_semaphore held_{0}, go_on_{0};
};

class SendsFirst : public testing::Test {
 protected:
  // Two Sends, of which the second one is not complete, and their answer.
  void start(uint16_t ord = 0) {
    const SocketEnds ends = connect_sockets();
    ours = ends.ours;
    peer = std::make_unique<RawPeer>(ends.theirs);
    host = std::make_unique<Host>(
        *engine, HostOptions{.initiator = true, .crc = false, .ord = ord, .cq_events = &sender});
    ASSERT_EQ(host->attach(ours), 0);
    for (uint64_t id = 10; id < 14; ++id) ASSERT_EQ(host->receive(RecvWr({}, id)), 0);
  }
  void post_held() {
    host->send_cq->arm(false);
    poster = std::thread([this] {
      SendWr first(IBV_WR_SEND, {}, 1), second(IBV_WR_SEND, {}, 2);
      first.get().next = &second.get();
      ibv_send_wr* bad = nullptr;
      EXPECT_EQ(host->qp->post_send(&first.wr, &bad), 0);
    });
    sender.wait_until_held();
    peer->receive(2 * kEmptySend);
  }
  void let_go() {
    sender.let_go();
    poster.join();
  }
  static Octets answer(uint32_t msn = 1) { return fpdu(untagged(3, 0, msn, 0, {}), false); }
  // The engine has received all that the peer sent, and dealt with it.
  void let_engine_look() {
    int unread = 1;
    ASSERT_TRUE(wait_until([&] { return ioctl(ours, FIONREAD, &unread) == 0 && unread == 0; }));
    for (int turn = 0; turn < 3; ++turn) engine->run_sync([] {});
  }
  // Whether both Sends were complete when the first receive was.
  bool in_order() {
    bool sends_first = false;
    EXPECT_TRUE(wait_until([&] {
      if (host->received().empty()) return false;
      sends_first = host->sent().size() == 2;
      return true;
    }));
    return sends_first;
  }

  static constexpr size_t kEmptySend = 24;
  HeldSender sender;
  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
  int ours = -1;
  std::unique_ptr<Host> host;
  std::unique_ptr<RawPeer> peer;
  std::thread poster;
};

TEST_F(SendsFirst, AnAnswerWaitsForASenderThatHasLostItsCpu) {
  start();
  post_held();
  ASSERT_TRUE(peer->send(answer()));
  let_engine_look();
  EXPECT_EQ(host->sent().size(), 1u);
  EXPECT_TRUE(host->received().empty());
  let_go();
  EXPECT_TRUE(in_order());
}

TEST_F(SendsFirst, WhatComesBehindAnAnswerWaitsToo) {
  start();
  post_held();
  Octets octets = answer();
  octets = concat(std::move(octets), answer(2));
  ASSERT_TRUE(peer->send(octets));
  let_engine_look();
  // The engine receives no more of it meanwhile.
  ASSERT_TRUE(peer->send(answer(3)));
  peer->finish();
  for (int turn = 0; turn < 3; ++turn) engine->run_sync([] {});
  EXPECT_TRUE(host->received().empty());
  EXPECT_FALSE(host->ended());
  let_go();
  EXPECT_TRUE(in_order());
  ASSERT_TRUE(host->wait_for_end());
  const std::vector<ibv_wc> received = host->received();
  ASSERT_EQ(received.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(received[i].wr_id, 10 + i);
    EXPECT_EQ(received[i].status, i < 3 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR) << i;
  }
}

// Only what answers waits: a Write brings no completion.
TEST_F(SendsFirst, AWriteDoesNotWait) {
  start();
  Buffer target(host->memory, Octets(8), mem::kRemoteWrite);
  post_held();
  ASSERT_TRUE(peer->send(fpdu(tagged(0, target.stag(), target.start(), pattern(8)), false)));
  let_engine_look();
  EXPECT_EQ(target.content(), pattern(8));
  let_go();
}

// Who polls instead of the engine leaves the answer alone, and comes again.
TEST_F(SendsFirst, AnAnswerWaitsWhereSomebodyElsePolls) {
  start();
  uint32_t msn = 0;
  // Until a message comes without the engine: the queue pair is lent.
  ASSERT_TRUE(wait_until([&] {
    const uint64_t before = engine->counters().receives.load();
    EXPECT_EQ(host->receive(RecvWr({}, 100 + msn)), 0);
    for (int i = 0; i < 100; ++i) host->received();
    EXPECT_TRUE(peer->send(answer(++msn)));
    EXPECT_TRUE(wait_until([&] { return host->received().size() == msn; }));
    return engine->counters().receives.load() == before || HasFailure();
  }));
  post_held();
  ASSERT_TRUE(peer->send(answer(++msn)));
  int unread = 1;
  ASSERT_TRUE(wait_until([&] {
    EXPECT_LT(host->received().size(), msn);
    return ioctl(ours, FIONREAD, &unread) == 0 && unread == 0;
  }));
  for (int i = 0; i < 100; ++i) EXPECT_LT(host->received().size(), msn);
  EXPECT_EQ(host->sent().size(), 1u);
  let_go();
  EXPECT_TRUE(wait_until([&] {
    if (host->received().size() < msn) return false;
    EXPECT_EQ(host->sent().size(), 2u);
    return true;
  }));
}

// A connection that is reset, failed or closed while an answer waits does not wait for that. Nobody
// may destroy a queue pair while another thread posts to it (doc/threading.md).
TEST_F(SendsFirst, WhoEndsAConnectionWaitsForNoAnswer) {
  for (const Host::Ending how : Host::kEndings) {
    if (how == Host::Ending::kDestroy) continue;
    start();
    post_held();
    ASSERT_TRUE(peer->send(answer()));
    let_engine_look();
    std::thread ender([&] { host->end_by(how); });
    let_engine_look();
    let_go();
    ender.join();
    host.reset();
  }
}

// A Read whose response came before a Send is complete before that Send's receive.
TEST_F(SendsFirst, AReadIsCompletedBeforeWhatCameBehindItsResponse) {
  start(1);
  Buffer sink(host->memory, Octets(4));
  ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 1)), 0);
  const Octets request = peer->receive(52);
  ASSERT_EQ(request.size(), 52u);
  const auto be32 = [&](size_t at) {
    return uint32_t{request[at]} << 24 | uint32_t{request[at + 1]} << 16 |
           uint32_t{request[at + 2]} << 8 | request[at + 3];
  };
  // RFC 5040 4.4: the sink's STag and TO are the first 12 octets behind the DDP header.
  const uint64_t to = uint64_t{be32(24)} << 32 | be32(28);
  Octets octets = fpdu(tagged(2, be32(20), to, pattern(4)), false);
  octets = concat(std::move(octets), answer());
  host->recv_cq->arm(false);
  ASSERT_TRUE(peer->send(octets));
  sender.wait_until_held();  // the engine, when it has completed the receive
  EXPECT_EQ(host->sent().size(), 1u);
  sender.let_go();
}

}  // namespace
}  // namespace uiw::test
