// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a hostile peer of a UC queue pair gains: the end of the connection, and no more.
#include <gtest/gtest.h>

#include "session/state.h"
#include "support/host.h"
#include "support/scene.h"

namespace uiw::session {

class InsideQueuePair {
 public:
  static const qp::Losses& losses(QueuePair& qp) { return qp.state_->connection->shared.losses; }
};

}  // namespace uiw::session

namespace uiw::test {

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.id;
}

namespace {

// What unreliable service does not take for a mistake of the peer's: it drops that.
bool is_dropped(const Outcome& outcome) {
  switch (outcome.code) {
    case 0x1100:  // no such STag, or no right
    case 0x1101:  // bounds
    case 0x1102:  // another stream's
    case 0x1103:  // wrap
    case 0x1202:  // no receive
    case 0x1205:  // too long
      return outcome.id != "N42";
    default:
      return false;
  }
}

class UnreliablePeers : public testing::TestWithParam<Outcome> {
 protected:
  UnreliablePeers()
      : engine(std::move(*engine::Engine::start())),
        victim(*engine, {.service = core::Service::kUnreliable}) {
    EXPECT_EQ(victim.qp->expect_peer(), 0);
    EXPECT_EQ(victim.modify(IBV_QPS_RTS), 0);
    const SocketEnds sockets = connect_sockets();
    hostile = std::make_unique<RawPeer>(sockets.theirs);
    EXPECT_EQ(victim.attach(sockets.ours), 0);
  }
  std::unique_ptr<engine::Engine> engine;
  Host victim;
  std::unique_ptr<RawPeer> hostile;
};

TEST_P(UnreliablePeers, TheQueuePairLivesOn) {
  const Outcome& expected = GetParam();
  Scene scene(victim.memory, expected.id);
  const std::vector<RecvWr> receives = scene.receive_list(expected.id);
  for (const RecvWr& wr : receives) ASSERT_EQ(victim.receive(wr), 0);
  ASSERT_TRUE(hostile->send(with_stags(negative(expected.id).octets, scene.stags)));
  if (is_dropped(expected)) {
    const qp::Losses& losses = session::InsideQueuePair::losses(*victim.qp);
    ASSERT_TRUE(wait_until([&] {
      return losses.of(qp::Loss::kNoReceive) + losses.of(qp::Loss::kTooLong) +
                 losses.of(qp::Loss::kNoAccess) >
             0;
    }));
  } else {
    ASSERT_TRUE(victim.wait_for_end());
    EXPECT_EQ(victim.end_error(), 0);
  }
  ASSERT_EQ(victim.post(SendWr(IBV_WR_SEND, {}, 5)), 0);
  ASSERT_TRUE(wait_until([&] { return !victim.sent().empty(); }));
  if (is_dropped(expected)) {
    EXPECT_EQ(to_hex(hostile->receive(24)), to_hex(fpdu(untagged(3, 0, 1, 0, {}))));
    EXPECT_FALSE(victim.ended());
  }
  scene.expect_untouched(expected.id);
  EXPECT_EQ(victim.sent()[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(victim.state(), IBV_QPS_RTS);
  EXPECT_TRUE(victim.events().empty());
}

std::vector<Outcome> faults() {
  std::vector<Outcome> all = outcomes();
  std::erase_if(all, [](const Outcome& outcome) { return outcome.fine; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Vectors, UnreliablePeers, testing::ValuesIn(faults()),
                         [](const auto& the) { return std::string(the.param.id); });

}  // namespace
}  // namespace uiw::test
