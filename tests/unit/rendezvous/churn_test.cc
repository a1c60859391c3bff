// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Numbers, ports, listeners and pending peers that come and go for a long time while some stay.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/gid.h"
#include "device/gid_table.h"
#include "unit/engine/support.h"
#include "unit/rendezvous/qpn_listeners.h"

namespace uiw::rendezvous {
namespace {

// The host's ports, as far as this process holds them: one descriptor each.
class PortsChurn : public testing::TestWithParam<uint32_t> {
 protected:
  void TearDown() override {
    close_idle_ports();
    EXPECT_EQ(open_descriptors(), before_);
  }
  int ports() const { return open_descriptors() - before_; }
  size_t ports_in_use() const {
    std::set<uint16_t> ports;
    for (const uint32_t number : live_) ports.insert(port_of(number));
    return ports.size();
  }

  const int before_ = open_descriptors();
  std::vector<uint32_t> live_, gone_;
  std::set<uint32_t> model_;
};

TEST_P(PortsChurn, IsAsTheModelSays) {
  constexpr size_t kStaying = 5, kMost = 2000, kSteps = 250'000, kWave = 10'000;
  std::mt19937 random(GetParam());
  for (size_t step = 0; step < kSteps && !HasFailure(); ++step) {
    const bool filling = step / kWave % 2 == 0;
    const size_t wanted = filling ? kMost : kStaying;
    const bool more = live_.size() < kStaying ||
                      (live_.size() != wanted && filling == (random() % 4 > 0)) ||
                      (live_.size() == wanted && !filling);
    if (more && live_.size() < kMost) {
      core::Result<uint32_t> number = take_number();
      ASSERT_TRUE(number) << strerror(number.error());
      ASSERT_TRUE(model_.insert(*number).second) << "two have " << *number;
      ASSERT_TRUE(number_in_use(*number));
      live_.push_back(*number);
    } else {
      std::swap(live_[random() % live_.size()], live_.back());
      gone_.push_back(live_.back());
      model_.erase(live_.back());
      give_number(live_.back());
      live_.pop_back();
    }
    const std::vector<uint32_t>& asked = random() % 2 == 0 || gone_.empty() ? live_ : gone_;
    if (!asked.empty()) {
      const uint32_t number = asked[random() % asked.size()];
      ASSERT_EQ(number_in_use(number), model_.contains(number));
    }
    if (gone_.size() > 1000) gone_.clear();
    // Whoever looks a number up goes through no more ports than hold one, and one.
    if (step % 1000 == 0) ASSERT_LE(ports(), static_cast<int>(ports_in_use()) + 1) << step;
  }
  for (const uint32_t number : live_) give_number(number);
  EXPECT_LE(ports(), 1);
}
INSTANTIATE_TEST_SUITE_P(BySeed, PortsChurn, testing::Values(1, 2));

int open_sockets() {
  int count = 0;
  struct stat status;
  for (int fd = 0; fd < 1024; ++fd) count += fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
  return count;
}

class QpnListenersChurn : public QpnListeners, public testing::WithParamInterface<uint32_t> {
 protected:
  // As a queue pair at that address of the loopback device.
  static void move_to(Party& party, unsigned host) {
    party.name.gid = gid(("::ffff:127.0.0." + std::to_string(host)).c_str());
  }
  static RawPeer call_at(const Party& party) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_storage address =
        core::socket_address_of(party.name.gid, port_of(party.name.qp_num), 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in)), 0)
        << strerror(errno);
    return RawPeer(fd);
  }
};

// One queue pair stays, so its port does: whatever other peers came there, at whichever addresses,
// and whoever came and however it went, it holds no more than those that are there.
TEST_P(QpnListenersChurn, HoldNothingOfThoseThatWent) {
  constexpr int kRounds = 400;
  std::mt19937 random(GetParam());
  Party staying(*engine);
  ASSERT_EQ(staying.search_peer(peer_of(staying)), 0);
  const int before = open_sockets();
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    {
      Party party(*engine);
      move_to(party, 2 + random() % 250);
      ASSERT_EQ(port_of(party.name.qp_num), port_of(staying.name.qp_num));
      const bool is_met = random() % 4 > 0;
      if (is_met) {
        ASSERT_EQ(party.search_peer({party.name.gid, party.name.qp_num | 0xff0000}), 0);
      }
      std::vector<RawPeer> peers;
      for (size_t i = random() % 8; i > 0; --i) {
        peers.push_back(is_met && random() % 2 == 0 ? call_at(party) : call(staying));
        switch (random() % 4) {
          case 0:
            break;  // says nothing
          case 1:
            peers.back().send(Octets(random() % 40, 'x'));
            break;
          case 2:
            peers.back().send(octets_of(request(hello(staying, round))));
            break;
          default:
            peers.back().send(octets_of(request(hello(party, round))));
        }
        if (random() % 3 == 0) peers.pop_back();
      }
    }
    // The last one's socket is open still.
    EXPECT_TRUE(wait_until([&] { return open_sockets() <= before + 1; })) << open_sockets();
  }
  EXPECT_TRUE(expect_welcome(staying).fd() >= 0);
}
INSTANTIATE_TEST_SUITE_P(BySeed, QpnListenersChurn, testing::Values(1, 2));

}  // namespace
}  // namespace uiw::rendezvous
