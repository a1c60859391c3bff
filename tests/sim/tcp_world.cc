// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Real queue pairs over loopback TCP, each host with an engine of its own; connections may be made
// on another one.
#include "sim/queue_pair_end.h"
#include "support/host.h"
#include "unit/cm/rig.h"

namespace uiw::test {

namespace {

class TcpEnd final : public QueuePairEnd, public cm::QueuePairs {
 public:
  using QueuePairEnd::attach;
  using QueuePairEnd::disconnect;
  using QueuePairEnd::QueuePairEnd;

  void reset_connection() override {
    sockaddr nowhere{};
    nowhere.sa_family = AF_UNSPEC;  // disconnects at once: RST
    ::connect(fd_, &nowhere, sizeof nowhere);
  }
  void half_close() override { ::shutdown(fd_, SHUT_WR); }

  // As connection management sees it. Thread: the engine that makes connections.
  bool exists(uint32_t) override { return true; }
  int claim(uint32_t) override { return qp_->claim(); }
  void abandon(uint32_t) override { qp_->abandon(); }
  int attach(uint32_t, transport::StreamPtr&& stream, const mpa::Agreement& agreed,
             core::Bytes leftover, session::ConnectionObserver* observer) override {
    agreement = agreed;
    cm_ = observer;
    return qp_->attach(std::move(stream), agreed, leftover, this,
                       session::QueuePair::Receiving::kLater);
  }
  void receive(uint32_t) override { qp_->receive(); }
  void set_ack_timeout(uint32_t, uint8_t) override {}
  void await_receives(uint32_t, bool) override {}
  void disconnect(uint32_t) override { qp_->disconnect(); }
  bool forget_observer(uint32_t) override {
    cm_ = nullptr;
    return true;
  }

  void on_first_fpdu() override {
    QueuePairEnd::on_first_fpdu();
    if (cm_) cm_->on_first_fpdu();
  }
  void on_connection_ended(int error) override {
    QueuePairEnd::on_connection_ended(error);
    if (auto* told = std::exchange(cm_, nullptr)) told->on_connection_ended(error);
  }

 private:
  session::ConnectionObserver* cm_ = nullptr;
};

// An application with an id for its end.
struct Application {
  Application(const core::Settings& its_settings, std::unique_ptr<TcpEnd> its_end)
      : settings(its_settings), end(std::move(its_end)) {
    param.qp_num = end->qp_num;
    param.responder_resources = static_cast<uint8_t>(end->options.ird);
    param.initiator_depth = static_cast<uint8_t>(end->options.ord);
  }
  ~Application() {
    channel.close();  // before the end: its ids still know it
    end->destroy();
  }
  uint32_t new_id() {
    uint32_t id = 0;
    EXPECT_EQ(
        manager.create_id(channel.channel, 1, cm::PortSpace::kTcp, cm::Service::kConnection, id),
        0);
    return id;
  }
  void expect(cm::EventType type) { channel.expect(type); }

  const core::Settings settings;
  cm::ConnParam param;
  std::unique_ptr<TcpEnd> end;
  cm::Manager manager{*end, settings};
  cm::test::TestChannel channel{manager};
};

class TcpWorld final : public World {
 public:
  explicit TcpWorld(const Medium& medium) : medium_(medium) {
    engines_[0] = std::move(*engine::Engine::start());
    engines_[1] = std::move(*engine::Engine::start());
    if (medium.elsewhere) making_ = std::move(*engine::EngineRef::acquire());
  }
  ~TcpWorld() override {
    for (auto& end : ends_) end->destroy();
  }

  std::pair<End*, End*> connect(EndOptions first, EndOptions second) override {
    apply(medium_, first, second);
    const SocketEnds sockets = connect_sockets(medium_.socket_buffer ? 1460 : 0);
    auto a = std::make_unique<TcpEnd>(*engines_[0], making(0), first_memory, ++qp_num_, first);
    auto b = std::make_unique<TcpEnd>(*engines_[1], making(1), second_memory, ++qp_num_, second);
    b->attach(sockets.ours, agreement_of(second, false));
    a->attach(sockets.theirs, agreement_of(first, true));
    if (const int size = medium_.socket_buffer) {
      for (const int fd : {sockets.ours, sockets.theirs})
        for (const int option : {SO_SNDBUF, SO_RCVBUF})
          setsockopt(fd, SOL_SOCKET, option, &size, sizeof size);
    }
    ends_.push_back(std::move(a));
    ends_.push_back(std::move(b));
    return {ends_[ends_.size() - 2].get(), ends_.back().get()};
  }

  std::pair<End*, End*> start_up(const core::Settings& first,
                                 const core::Settings& second) override {
    if (!making_) making_ = std::move(*engine::EngineRef::acquire());
    const auto make = [this](const core::Settings& settings, mem::Table& memory,
                             engine::Engine& own) -> Application& {
      auto& engine = medium_.elsewhere ? own : *making_;
      auto end = std::make_unique<TcpEnd>(engine, *making_, memory, ++qp_num_, EndOptions{});
      return *applications_.emplace_back(std::make_unique<Application>(settings, std::move(end)));
    };
    Application& a = make(first, first_memory, *engines_[0]);
    Application& b = make(second, second_memory, *engines_[1]);
    const uint32_t listener = b.new_id(), id = a.new_id();
    cm::Route route;
    EXPECT_EQ(b.manager.bind(b.channel.channel, listener, cm::test::ip("127.0.0.1", 0)), 0);
    EXPECT_EQ(b.manager.listen(b.channel.channel, listener, 0), 0);
    EXPECT_EQ(b.manager.query(b.channel.channel, listener, route), 0);
    EXPECT_EQ(a.manager.resolve_address(a.channel.channel, id, {}, route.source), 0);
    a.expect(cm::EventType::kAddrResolved);
    EXPECT_EQ(a.manager.resolve_route(a.channel.channel, id), 0);
    a.expect(cm::EventType::kRouteResolved);
    EXPECT_EQ(a.manager.connect(a.channel.channel, id, a.param), 0);
    const cm::Event request = b.channel.expect(cm::EventType::kConnectRequest);
    EXPECT_EQ(b.manager.accept(b.channel.channel, request.id, 2, b.param), 0);
    a.expect(cm::EventType::kEstablished);
    b.expect(cm::EventType::kEstablished);
    return {a.end.get(), b.end.get()};
  }

  bool run_until(const std::function<bool()>& done) override {
    if (!wait_until(done)) return false;
    // What peers wrote into this process's memory is there by TCP's order, which ThreadSanitizer
    // does not know; it knows this one.
    let_engines_turn();
    return true;
  }
  // Whatever is under way over loopback is done when all engines have been through a few turns.
  void settle() override {
    for (int turn = 0; turn < 200; ++turn) {
      let_engines_turn();
      sched_yield();
    }
  }

 private:
  engine::Engine& making(int end) { return medium_.elsewhere ? *making_ : *engines_[end]; }
  void let_engines_turn() {
    for (auto& engine : engines_) engine->run_sync([] {});
    if (making_) making_->run_sync([] {});
  }

  const Medium medium_;
  std::unique_ptr<engine::Engine> engines_[2];
  engine::EngineRef making_;  // connection management has this one
  std::vector<std::unique_ptr<Application>> applications_;
  std::vector<std::unique_ptr<TcpEnd>> ends_;
  uint32_t qp_num_ = 100;
};

}  // namespace

std::unique_ptr<World> World::create(const Medium& medium) {
  return std::make_unique<TcpWorld>(medium);
}

std::vector<Medium> media(uint32_t) {
  return {{.tcp = true, .crc = true, .name = "crc"},
          {.tcp = true, .crc = false, .name = "plain"},
          {.tcp = true, .crc = true, .socket_buffer = 8192, .name = "narrow"},
          {.tcp = true, .crc = true, .elsewhere = true, .name = "elsewhere"},
          {.tcp = true,
           .crc = true,
           .markers_to_first = true,
           .markers_to_second = true,
           .name = "markers"}};
}

}  // namespace uiw::test
