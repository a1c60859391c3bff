// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// From start-up to full operation: no octet may go to whom it is not meant for.
#include <chrono>
#include <functional>
#include <semaphore>
#include <utility>

#include "session/queue_pair.h"
#include "support/host.h"

namespace uiw::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);  // for a test that would hang

// What connection set-up leaves behind as the stream's handler.
class StartUp final : public transport::StreamHandler {
 public:
  void on_octets(core::Bytes octets) override { stolen += octets.size(); }
  void on_end_of_stream() override {}
  void on_error(int) override {}
  void on_writable() override {}
  size_t stolen = 0;
};

class Watcher final : public session::ConnectionObserver {
 public:
  explicit Watcher(engine::Engine& engine) : engine_(engine) {}
  void on_first_fpdu() override {
    EXPECT_TRUE(engine_.on_engine_thread());
    first_fpdu.release();
  }
  void on_connection_ended(int) override {
    EXPECT_TRUE(engine_.on_engine_thread());
    ended.release();
  }
  std::counting_semaphore<> first_fpdu{0}, ended{0};

 private:
  engine::Engine& engine_;
};

// The queue pair lives on the engine on which its connection is made, or on another one.
class HandOver : public testing::TestWithParam<bool> {
 protected:
  HandOver() {
    agreement.crc = false;
    agreement.ird = agreement.ord = 1;
    fcntl(sockets.theirs, F_SETFL, 0);
  }
  ~HandOver() override {
    if (sockets.theirs >= 0) close_peer();
    qp.reset();  // host would have its own engine forget the observer, who is not there
  }
  void close_peer() { close(std::exchange(sockets.theirs, -1)); }
  void send_to_us() {
    const Octets send = fpdu(untagged(3, 0, 1, 0, {}), false);
    ASSERT_EQ(write(sockets.theirs, send.data(), send.size()), static_cast<ssize_t>(send.size()));
  }
  transport::StreamPtr adopt() { return transport::TcpStream::adopt(*engine, sockets.ours); }
  int attach(transport::StreamPtr&& stream) {
    return qp->attach(std::move(stream), agreement, {}, &watcher);
  }

  std::unique_ptr<engine::Engine> another = std::move(*engine::Engine::start());
  std::unique_ptr<engine::Engine> engine = std::move(*engine::Engine::start());
  Watcher watcher{*engine};
  Host host{GetParam() ? *another : *engine};
  std::unique_ptr<session::QueuePair>& qp = host.qp;
  SocketEnds sockets = connect_sockets();
  mpa::Agreement agreement;
};
INSTANTIATE_TEST_SUITE_P(Engines, HandOver, testing::Bool(),
                         [](const auto& the) { return the.param ? "Another" : "TheSame"; });

TEST_P(HandOver, OctetsThatArriveDuringItReachTheQueuePair) {
  ASSERT_EQ(host.receive(RecvWr({}, 77)), 0);
  StartUp start_up;
  engine->run_sync([&] {
    auto stream = adopt();
    // The start-up's receive is armed, the kernel has octets for it, and then the stream changes
    // hands.
    stream->set_handler(&start_up);
    send_to_us();
    engine->flush();
    ASSERT_EQ(attach(std::move(stream)), 0);
  });
  ASSERT_TRUE(watcher.first_fpdu.try_acquire_for(kPatience)) << "the octets were lost";
  EXPECT_EQ(start_up.stolen, 0u);
  const std::vector<ibv_wc> received = host.received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].wr_id, 77u);
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  // rping -q moves its queue pair only now; the connection must not mind.
  for (ibv_qp_state wanted : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    EXPECT_EQ(host.modify(wanted), 0);
    EXPECT_EQ(host.state(), IBV_QPS_RTS);
  }
  close_peer();
  ASSERT_TRUE(watcher.ended.try_acquire_for(kPatience));
}

// The caller has last words for the peer.
TEST_P(HandOver, ARefusedStreamIsStillTheCallers) {
  ASSERT_EQ(host.modify(IBV_QPS_ERR), 0);
  StartUp start_up;
  engine->run_sync([&] {
    auto stream = adopt();
    stream->set_handler(&start_up);
    EXPECT_EQ(attach(std::move(stream)), EINVAL);
    ASSERT_TRUE(stream);
    EXPECT_EQ(&stream->engine(), engine.get());
    char word[] = "no";
    const iovec piece{word, 2};
    EXPECT_EQ(stream->send(&piece, 1), 2);
  });
  char heard[3] = {};
  EXPECT_EQ(read(sockets.theirs, heard, 2), 2);
  EXPECT_STREQ(heard, "no");
  EXPECT_FALSE(watcher.ended.try_acquire());
}

TEST_P(HandOver, WhoWasForgottenHearsNothing) {
  ASSERT_EQ(host.receive(RecvWr({}, 77)), 0);
  engine->run_sync([&] {
    ASSERT_EQ(attach(adopt()), 0);
    send_to_us();
    // What another engine has to tell comes behind this.
    another->run_sync([] {});
    qp->forget_observer();
  });
  close_peer();
  ASSERT_TRUE(wait_until([&] { return host.state() == IBV_QPS_ERR; }));
  for (auto* each : {another.get(), engine.get()}) each->run_sync([] {});
  EXPECT_FALSE(watcher.first_fpdu.try_acquire());
  EXPECT_FALSE(watcher.ended.try_acquire());
}

TEST_P(HandOver, TheObserverHearsOfTheEndOfADestroyedQueuePairOnce) {
  engine->run_sync([&] { ASSERT_EQ(attach(adopt()), 0); });
  qp.reset();
  ASSERT_TRUE(watcher.ended.try_acquire_for(kPatience));
  for (auto* each : {another.get(), engine.get()}) each->run_sync([] {});
  EXPECT_FALSE(watcher.ended.try_acquire());
}

// rdma_cm may connect a queue pair until ibv_destroy_qp has taken it off its list.
TEST_P(HandOver, WhoIsFirstAtTheEndFindsTheQueuePairAlive) {
  struct Connect final : engine::Task {
    std::function<void()> call;
    void run() override { call(); }
  } connect;
  int error = -1;
  connect.call = [&] {
    EXPECT_TRUE(engine->on_engine_thread());
    error = attach(adopt());
  };
  qp->end_after(*engine, connect);
  EXPECT_EQ(error, 0);
  qp.reset();
  ASSERT_TRUE(watcher.ended.try_acquire_for(kPatience));
  for (auto* each : {another.get(), engine.get()}) each->run_sync([] {});
  EXPECT_FALSE(watcher.ended.try_acquire());
  char octet;
  EXPECT_LE(read(sockets.theirs, &octet, 1), 0);
}

}  // namespace
}  // namespace uiw::test
