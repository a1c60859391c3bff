// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "rendezvous/peer_search.h"
#include "rendezvous/ports.h"
#include "support/gid.h"
#include "support/host.h"

namespace uiw::rendezvous {

using namespace uiw::test;

inline in6_addr loopback_gid() {
  return gid("::ffff:127.0.0.1");
}

inline constexpr size_t kFrameSize =
    mpa::kStartupHeaderSize + mpa::kEnhancedBlockSize + kHandshakeMessageSize;

inline Octets octets_of(const mpa::StartupFrame& frame) {
  Octets octets(mpa::kMaxStartupFrame);
  octets.resize(mpa::encode(octets.data(), frame));
  return octets;
}
// As a queue pair asks.
inline mpa::StartupFrame request(const HandshakeMessage& message) {
  mpa::StartupFrame frame;
  frame.enhanced = mpa::Enhanced{.peer_to_peer = true, .rtr_write = true, .ird = 1, .ord = 1};
  frame.private_size = kHandshakeMessageSize;
  encode(frame.private_data, message);
  return frame;
}

// The PSN that a queue pair sends with, unless a test wants another one.
inline uint32_t psn_of(const Name& name) {
  return (name.qp_num * 2654435761u) >> 8;
}

// A queue pair with a name.
class Party {
 public:
  explicit Party(engine::Engine& engine, core::Service service = core::Service::kReliable)
      : host(engine, {.service = service}) {
    core::Result<uint32_t> number = take_number();
    EXPECT_TRUE(number);
    name = {loopback_gid(), *number};
  }
  ~Party() { leave(); }
  // 0 or errno, as ibv_modify_qp to RTR.
  int search_peer(const Name& peer) {
    int error = 0;
    host.engine.run_sync([&] {
      auto created = PeerSearch::create(host.engine, *host.qp,
                                        {.own = name,
                                         .peer = peer,
                                         .ird = 4,
                                         .rq_psn = peer_psn ? *peer_psn : psn_of(peer),
                                         .service = host.options.service});
      error = created ? host.qp->expect_peer() : created.error();
      if (error != 0) return;
      search = std::move(*created);
      search->begin();
    });
    return error;
  }
  int ready(core::Nanoseconds time_limit = 0) {
    const int error = host.modify(IBV_QPS_RTS);
    if (error == 0)
      host.engine.run_sync(
          [&] { search->enter_rts(own_psn ? *own_psn : psn_of(name), time_limit); });
    return error;
  }
  void leave() {
    if (!host.qp) return;
    host.engine.run_sync([&] { search.reset(); });
    host.destroy();
    host.engine.run_sync([&] { give_number(name.qp_num); });
  }
  bool wait_for_sent(size_t count) {
    return wait_until([&] { return host.sent().size() >= count; });
  }
  bool wait_for_received(size_t count) {
    return wait_until([&] { return host.received().size() >= count; });
  }

  Host host;
  Name name;
  std::optional<uint32_t> own_psn, peer_psn;
  std::unique_ptr<PeerSearch> search;
};

// Tests with an engine.
class OnEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = engine::Engine::start();
    ASSERT_TRUE(started);
    engine = std::move(*started);
  }
  void TearDown() override { close_idle_ports(); }

  std::unique_ptr<engine::Engine> engine;
};

}  // namespace uiw::rendezvous
