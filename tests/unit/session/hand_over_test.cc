// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// From start-up to full operation: no octet may go to whom it is not meant for.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <semaphore>

#include "session/queue_pair.h"
#include "support/machine.h"

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

class Watcher final : public session::ConnectionObserver, public session::QueuePairEvents {
 public:
  void on_first_fpdu() override { first_fpdu.release(); }
  void on_connection_ended(int) override { ended.release(); }
  void on_async_event(ibv_event_type) override {}
  std::binary_semaphore first_fpdu{0}, ended{0};
};

// A peer's socket and ours, connected over loopback.
void connect_pair(int& peer, int& ours) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(peer, reinterpret_cast<sockaddr*>(&address), size), 0);
  ours = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  ASSERT_GE(ours, 0);
  close(listener);
}

TEST(HandOver, OctetsThatArriveDuringItReachTheQueuePair) {
  auto engine = std::move(*engine::Engine::start());
  mem::Table memory;
  auto cq = queue::CompletionQueue::create(16, nullptr);
  Watcher watcher;
  session::QueuePairOptions options;
  options.qp_num = 5;
  options.pd = kPd;
  options.memory = &memory;
  options.send_cq = options.recv_cq = cq.get();
  options.events = &watcher;
  options.cap = {.max_send_wr = 4,
                 .max_recv_wr = 4,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = 0};
  auto qp = session::QueuePair::create(*engine, options);
  ASSERT_TRUE(qp);
  RecvWr receive({}, 77);
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(qp->post_recv(&receive.get(), &bad), 0);

  int peer = -1, ours = -1;
  connect_pair(peer, ours);
  StartUp start_up;
  const Octets send = fpdu(untagged(3, 0, 1, 0, {}), false);
  mpa::Agreement agreement;
  agreement.crc = false;
  agreement.ird = agreement.ord = 1;
  engine->run_sync([&] {
    auto stream = transport::TcpStream::adopt(*engine, ours);
    // The start-up's receive is armed, the kernel has octets for it, and then the stream changes
    // hands.
    stream->set_handler(&start_up);
    ASSERT_EQ(write(peer, send.data(), send.size()), static_cast<ssize_t>(send.size()));
    engine->flush();
    ASSERT_EQ(qp->attach(std::move(stream), agreement, {}, &watcher), 0);
  });
  ASSERT_TRUE(watcher.first_fpdu.try_acquire_for(kPatience)) << "the octets were lost";
  EXPECT_EQ(start_up.stolen, 0u);
  ibv_wc wc;
  ASSERT_EQ(cq->poll(1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 77u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  // rping -q moves its queue pair only now; the connection must not mind.
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  for (ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = state;
    EXPECT_EQ(qp->modify(attr, IBV_QP_STATE), 0);
    EXPECT_EQ(qp->query(attr, IBV_QP_STATE, init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  }
  close(peer);
  ASSERT_TRUE(watcher.ended.try_acquire_for(kPatience));
}

}  // namespace
}  // namespace uiw::test
