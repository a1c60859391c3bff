// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ids, connections and strangers that come and go for a long time while a listener stays: no id
// hears what is not its own, and nothing is kept of those that went.
#include <malloc.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "unit/cm/rig.h"
#include "unit/engine/support.h"

namespace uiw::cm::test {
namespace {

// As many queue pairs as are made; none has a number twice.
class ManyQueuePairs final : public QueuePairs {
 public:
  uint32_t make(engine::Engine& engine) {
    const std::lock_guard hold(mutex_);
    auto made = std::make_unique<One>();
    made->queue_pair.owner_engine_ = &engine;
    all_[++last_] = std::move(made);
    return last_;
  }
  // As ibv_destroy_qp: on the engine, which may hold what it found only until its turn ends.
  void destroy(uint32_t qp_num, engine::Engine& engine) {
    std::unique_ptr<One> one;
    engine.run_sync([&] {
      const std::lock_guard hold(mutex_);
      one = std::move(all_.at(qp_num));
      all_.erase(qp_num);
    });
    engine.run_sync([&] { one->queue_pair.cut(); });
    engine.run_sync([&] { one.reset(); });  // behind what it has posted
  }

  bool exists(uint32_t) override { return true; }
  int claim(uint32_t qp_num) override {
    const std::lock_guard hold(mutex_);
    const auto found = all_.find(qp_num);
    return found == all_.end() || std::exchange(found->second->claimed, true) ? EINVAL : 0;
  }
  void abandon(uint32_t) override {}
  int attach(uint32_t qp_num, StreamPtr&& stream, const mpa::Agreement& agreement,
             core::Bytes leftover, session::ConnectionObserver* observer) override {
    FakeQueuePair* const qp = find(qp_num);
    return qp ? qp->attach(std::move(stream), agreement, leftover, observer) : EINVAL;
  }
  void receive(uint32_t qp_num) override {
    if (FakeQueuePair* const qp = find(qp_num)) qp->receive();
  }
  void set_ack_timeout(uint32_t, uint8_t) override {}
  void await_receives(uint32_t, bool) override {}
  void disconnect(uint32_t qp_num) override {
    if (FakeQueuePair* const qp = find(qp_num)) qp->disconnect();
  }
  bool forget_observer(uint32_t qp_num) override {
    FakeQueuePair* const qp = find(qp_num);
    if (qp) qp->forget_observer();
    return qp;
  }

 private:
  struct One {
    FakeQueuePair queue_pair{false};
    bool claimed = false;
  };
  FakeQueuePair* find(uint32_t qp_num) {
    const std::lock_guard hold(mutex_);
    const auto found = all_.find(qp_num);
    return found == all_.end() ? nullptr : &found->second->queue_pair;
  }
  std::mutex mutex_;
  std::map<uint32_t, std::unique_ptr<One>> all_;
  uint32_t last_ = 0;
};

class EndpointChurn : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr int kRounds = 20, kSteps = 400;  // in a round

  void SetUp() override {
    auto acquired = engine::EngineRef::acquire();
    ASSERT_TRUE(acquired.has_value()) << strerror(acquired.error());
    engine_ = std::move(*acquired);
    ASSERT_EQ(0, manager_.create_id(channel_.channel, 1, PortSpace::kTcp, Service::kConnection,
                                    listener_));
    ASSERT_EQ(0, manager_.bind(channel_.channel, listener_, ip("127.0.0.1", 0)));
    ASSERT_EQ(0, manager_.listen(channel_.channel, listener_, 0));
    Route route;
    ASSERT_EQ(0, manager_.query(channel_.channel, listener_, route));
    address_ = route.source;
    engine_->run_sync([] {});
  }

  struct Known {
    uint64_t uid;
    uint32_t qp_num = 0;
    bool requested = false;  // by a peer; neither accepted nor rejected
    bool ended = false;
  };
  using Ids = std::map<uint32_t, Known>;

  size_t below(size_t end) { return random_() % end; }
  Ids::iterator any() { return std::next(ids_.begin(), static_cast<long>(below(ids_.size()))); }

  void step() {
    switch (below(8)) {
      case 0:
      case 1:
        dial();
        break;
      case 2:
        connect();
        break;
      case 3:
        if (!peers_.empty()) peer_goes();
        break;
      case 4:
        if (!ids_.empty()) disconnect(any());
        break;
      case 5:
        if (ids_.size() > 10) destroy(any());
        break;
      default:
        if (!ids_.empty()) answer(any());
    }
    read_events();
  }

  // Somebody who speaks by hand, or says nothing.
  void dial() {
    RawPeer peer;
    peer.connect(address_);
    if (below(4) == 0) peer.send(Octets(below(60), 'x'));
    if (below(2) == 0) peer.send(request_frame());
    peers_.push_back(std::move(peer));
  }
  void peer_goes() {
    std::swap(peers_[below(peers_.size())], peers_.back());
    if (below(2) == 0) peers_.back().reset();
    peers_.pop_back();
  }
  void connect() {
    uint32_t id = 0;
    const uint64_t uid = ++last_uid_;
    ASSERT_EQ(0,
              manager_.create_id(channel_.channel, uid, PortSpace::kTcp, Service::kConnection, id));
    ASSERT_TRUE(ids_.emplace(id, Known{uid}).second);
    ASSERT_EQ(0, manager_.resolve_address(channel_.channel, id, {}, address_));
    ASSERT_EQ(0, manager_.resolve_route(channel_.channel, id));
    if (below(8) == 0) return;
    ids_[id].qp_num = queue_pairs_.make(*engine_);
    ASSERT_EQ(0, manager_.connect(channel_.channel, id, conn_param(ids_[id].qp_num)));
  }
  void answer(Ids::iterator which) {
    auto& [id, known] = *which;
    if (!std::exchange(known.requested, false)) return;
    if (below(4) == 0) {
      known.ended = true;
      manager_.reject(channel_.channel, id, {});  // or the peer has gone
      return;
    }
    known.qp_num = queue_pairs_.make(*engine_);
    const int error =
        manager_.accept(channel_.channel, id, known.uid = ++last_uid_, conn_param(known.qp_num));
    ASSERT_TRUE(error == 0 || error == ECONNRESET) << error;
    known.ended = error != 0;
  }
  void disconnect(Ids::iterator which) {
    const int error = manager_.disconnect(channel_.channel, which->first);
    ASSERT_TRUE(error == 0 || error == EINVAL) << error;
  }
  void destroy(Ids::iterator which) {
    const uint32_t id = which->first, qp_num = which->second.qp_num;
    const bool queue_pair_first = below(2) == 0;
    if (qp_num && queue_pair_first) queue_pairs_.destroy(qp_num, *engine_);
    uint32_t reported;
    ASSERT_EQ(0, manager_.destroy_id(channel_.channel, id, reported));
    ASSERT_EQ(ENOENT, manager_.destroy_id(channel_.channel, id, reported));
    if (qp_num && !queue_pair_first) queue_pairs_.destroy(qp_num, *engine_);
    ids_.erase(which);
  }

  void read_events() {
    for (Event event; manager_.next_event(channel_.channel, event) == 0;) {
      if (event.type == EventType::kConnectRequest) {
        ASSERT_EQ(1u, event.uid);
        ASSERT_TRUE(ids_.emplace(event.id, Known{0, 0, true, false}).second)
            << "two have " << event.id;
        continue;
      }
      const auto known = ids_.find(event.id);
      ASSERT_NE(known, ids_.end()) << "an event of an id that is gone";
      ASSERT_EQ(known->second.uid, event.uid);
      if (event.type == EventType::kAddrResolved || event.type == EventType::kRouteResolved)
        continue;
      ASSERT_FALSE(known->second.ended) << "an event behind the last";
      known->second.ended = event.type != EventType::kEstablished;
    }
  }

  // Nothing but the listener is left, and no socket of anybody.
  void all_go(int descriptors) {
    while (!ids_.empty() && !HasFailure()) destroy(ids_.begin());
    peers_.clear();
    ::uiw::test::poll_until([&] {
      read_events();  // Requests that came before their peers went
      while (!ids_.empty() && !HasFailure()) destroy(ids_.begin());
      return HasFailure() ||
             (manager_.endpoints() == 1 && ::uiw::test::open_descriptors() == descriptors);
    });
  }

  std::mt19937 random_{GetParam()};
  core::Settings settings_;
  engine::EngineRef engine_;
  ManyQueuePairs queue_pairs_;
  Manager manager_{queue_pairs_, settings_};
  TestChannel channel_{manager_};
  uint32_t listener_ = 0;
  sockaddr_storage address_{};
  uint64_t last_uid_ = 1;
  Ids ids_;
  std::vector<RawPeer> peers_;
};

TEST_P(EndpointChurn, NothingIsKeptOfThoseThatWent) {
  constexpr size_t kNoise = 64 << 10;  // bytes: what malloc() keeps at hand for each thread
  const int descriptors = ::uiw::test::open_descriptors();
  size_t occupied = 0;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    for (int i = 0; i < kSteps && !HasFailure(); ++i) step();
    all_go(descriptors);
    if (round == 1) occupied = mallinfo2().uordblks;
    if (round > 1) EXPECT_LT(mallinfo2().uordblks, occupied + kNoise) << round;
  }
}
INSTANTIATE_TEST_SUITE_P(BySeed, EndpointChurn, testing::Values(1, 2));

}  // namespace
}  // namespace uiw::cm::test
