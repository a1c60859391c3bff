// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Every pair of settings that two ends may start up with, and data over what they agreed on.
#include "sim/media.h"

namespace uiw::test {
namespace {

struct Choice {
  bool crc[2];
  bool markers[2];  // asked for by the initiator, by the responder
  uint32_t revision;
  bool peer_to_peer;
  core::RtrKind rtr[2];
};

std::vector<Choice> choices() {
  using enum core::RtrKind;
  std::vector<Choice> out;
  for (uint32_t bits = 0; bits < 16; ++bits) {
    Choice c{{(bits & 1) != 0, (bits & 2) != 0},
             {(bits & 4) != 0, (bits & 8) != 0},
             1,
             true,
             {kAny, kAny}};
    out.push_back(c);  // on revision 1 the rest is never spoken of
    c.revision = 2;
    c.peer_to_peer = false;
    out.push_back(c);
    c.peer_to_peer = true;
    for (const auto& [active, passive] :
         {std::pair{kAny, kAny}, {kAny, kWrite}, {kRead, kWrite}, {kWrite, kRead}}) {
      c.rtr[0] = active;
      c.rtr[1] = passive;
      out.push_back(c);
    }
  }
  return out;
}

std::string name_of(const Choice& c) {
  constexpr const char* kRtr[] = {"Any", "Read", "Write"};
  const auto which = [](const bool(&ends)[2]) {
    return ends[0] ? (ends[1] ? "Both" : "First") : ends[1] ? "Second" : "None";
  };
  std::string out = std::string("Crc") + which(c.crc) + "Markers" + which(c.markers) + "Revision" +
                    std::to_string(c.revision);
  if (c.revision == 2 && !c.peer_to_peer) out += "ClientServer";
  if (c.revision == 2 && c.peer_to_peer)
    out += std::string("Rtr") + kRtr[static_cast<int>(c.rtr[0])] + kRtr[static_cast<int>(c.rtr[1])];
  return out;
}

class StartUp : public testing::TestWithParam<std::tuple<Medium, Choice>> {
 protected:
  const Choice& choice = std::get<1>(GetParam());
  std::unique_ptr<World> world = World::create(std::get<0>(GetParam()));
};

TEST_P(StartUp, AgreesAndMovesData) {
  core::Settings settings[2];
  for (int end = 0; end < 2; ++end) {
    settings[end].crc = choice.crc[end] ? core::CrcPolicy::kOn : core::CrcPolicy::kOff;
    settings[end].mpa_markers = choice.markers[end];
    settings[end].mpa_rtr = choice.rtr[end];
  }
  settings[0].mpa_revision = choice.revision;
  settings[0].peer_to_peer = choice.peer_to_peer;
  const auto started = world->start_up(settings[0], settings[1]);
  const auto &a = started.first, &b = started.second;

  EXPECT_TRUE(a->agreement.initiator);
  EXPECT_FALSE(b->agreement.initiator);
  for (const End* end : {a, b}) {
    EXPECT_EQ(end->agreement.crc, choice.crc[0] || choice.crc[1]);  // MS-22
    EXPECT_EQ(end->agreement.revision, choice.revision);
    const bool rtr = choice.revision == 2 && choice.peer_to_peer;
    EXPECT_EQ(end->agreement.peer_to_peer, rtr);
    const bool write =
        choice.rtr[0] == core::RtrKind::kWrite ||
        (choice.rtr[0] == core::RtrKind::kAny && choice.rtr[1] == core::RtrKind::kWrite);
    EXPECT_EQ(end->agreement.rtr, !rtr    ? mpa::Rtr::kNone
                                  : write ? mpa::Rtr::kWrite
                                          : mpa::Rtr::kRead);
  }
  // MS-25
  EXPECT_EQ(a->agreement.rx_markers, choice.markers[0]);
  EXPECT_EQ(b->agreement.tx_markers, choice.markers[0]);
  EXPECT_EQ(a->agreement.tx_markers, choice.markers[1]);
  EXPECT_EQ(b->agreement.rx_markers, choice.markers[1]);

  // With an RTR either side may begin; without one the responder waits for the initiator's first
  // message. Each message has memory of its own: a Write may be placed while the Read before it is
  // still answered.
  constexpr size_t kSizes[] = {0, 5, 470, 3000, 70000};
  constexpr size_t kCount = std::size(kSizes), kTotal = 0 + 5 + 470 + 3000 + 70000;
  struct Traffic {
    Traffic(End& from, End& to)
        : source(from.memory, pattern(kTotal, 1)),
          target(to.memory, kTotal),
          back(from.memory, kTotal),
          received(to.memory, kTotal) {}
    Buffer source, target, back, received;
  };
  Traffic there(*a, *b), here(*b, *a);
  for (End* end : {a, b}) {
    Traffic& traffic = end == a ? here : there;
    for (size_t i = 0, at = 0; i < kCount; at += kSizes[i++])
      ASSERT_EQ(end->receive(RecvWr({traffic.received.sge(at, kSizes[i])}, i)), 0);
  }
  const auto post = [&](End* end, Traffic& traffic) {
    std::vector<SendWr> list;
    for (size_t i = 0, at = 0; i < kCount; at += kSizes[i++]) {
      const uint64_t target = traffic.target.start() + at;
      list.push_back(SendWr(IBV_WR_RDMA_WRITE, {traffic.source.sge(at, kSizes[i])}, 3 * i)
                         .to(target, traffic.target.stag()));
      list.push_back(SendWr(IBV_WR_RDMA_READ, {traffic.back.sge(at, kSizes[i])}, 3 * i + 1)
                         .to(target, traffic.target.stag()));
      list.push_back(SendWr(IBV_WR_SEND, {traffic.source.sge(at, kSizes[i])}, 3 * i + 2));
    }
    ASSERT_EQ(end->post_all(std::move(list)), 0);
  };
  post(b, here);
  if (!a->agreement.peer_to_peer) {
    // MS-20
    world->settle();
    EXPECT_EQ(b->sent_count(), 0u);
    EXPECT_EQ(a->received_count(), 0u);
  }
  post(a, there);
  for (End* end : {a, b}) {
    ASSERT_REACHED(end->sent_count() == 3 * kCount && end->received_count() == kCount);
    // ME-19: an RTR completes nothing and takes no receive.
    expect_in_order(end->sent());
    expect_in_order(end->received());
    for (const ibv_wc& wc : end->sent()) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(end->received()[i].byte_len, kSizes[i]);
  }
  for (Traffic* traffic : {&there, &here}) {
    EXPECT_TRUE(traffic->target.content() == traffic->source.content());
    EXPECT_TRUE(traffic->back.content() == traffic->source.content());
    EXPECT_TRUE(traffic->received.content() == traffic->source.content());
  }
  a->disconnect();
  ASSERT_REACHED(a->ended() && b->ended());
  for (End* end : {a, b}) {
    EXPECT_EQ(end->end_error(), 0);
    EXPECT_TRUE(end->async_events().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, StartUp, testing::Combine(testing::ValuesIn(media(3)), testing::ValuesIn(choices())),
    [](const auto& the) {
      return std::get<0>(the.param).name + "_" + name_of(std::get<1>(the.param));
    });

}  // namespace
}  // namespace uiw::test
