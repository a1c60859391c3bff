// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The vectors over real TCP, behind a real start-up, in both roles: every negative one to its
// Terminate with every octet of it, every positive one that a peer can say to what it asks for.
#include <gtest/gtest.h>

#include "support/party.h"
#include "support/scene.h"

namespace uiw::test {

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.id;
}

namespace {

using cm::EventType;

// Revision 1, so that the vectors' first FPDU may be the first on the stream.
class Replay {
 public:
  explicit Replay(bool initiator) : party(party_settings(true, 1)) {
    if (initiator) {
      party.connect(listener.address, "uiwarpPD");
      peer = listener.accept();
      EXPECT_EQ(to_hex(peer->receive(28)), to_hex(vector("V01-mpa-v1-req").octets));
      peer->send(vector("V02-mpa-v1-rep").octets);
    } else {
      peer = dial(party.listen());
      peer->send(vector("V01-mpa-v1-req").octets);
      EXPECT_EQ(party.accept(party.expect(EventType::kConnectRequest).id, "okok"), 0);
      EXPECT_EQ(to_hex(peer->receive(24)), to_hex(vector("V02-mpa-v1-rep").octets));
    }
    party.expect(EventType::kEstablished);
  }
  Party party;
  RawListener listener;
  std::unique_ptr<RawPeer> peer;
};

class VectorReplay : public testing::TestWithParam<std::tuple<Outcome, bool>> {};

TEST_P(VectorReplay, Negatives) {
  const auto& [expected, initiator] = GetParam();
  Replay r(initiator);
  Host& host = r.party.host;
  Scene scene(host.memory, expected.id);
  const std::vector<RecvWr> receives = scene.receive_list(expected.id);
  for (const RecvWr& wr : receives) ASSERT_EQ(host.receive(wr), 0);
  const Octets octets = with_stags(negative(expected.id).octets, scene.stags);
  ASSERT_TRUE(r.peer->send(octets));
  if (expected.fine) r.peer->finish();
  bool reset = true;
  const Octets said = r.peer->receive_all(&reset);
  EXPECT_FALSE(reset);
  if (expected.fine) {
    EXPECT_EQ(to_hex(said), expected.id == "N39" ? to_hex(fpdu(tagged(2, 1, 0, {}))) : "");
  } else if (expected.quiet) {
    EXPECT_EQ(to_hex(said), "");
  } else {
    // The mistake is in the last FPDU of each.
    const size_t before = [&] {
      size_t at = 0, last = 0;
      while (at < octets.size()) {
        last = at;
        at += (2 + (static_cast<size_t>(octets[at]) << 8 | octets[at + 1]) + 3) / 4 * 4 + 4;
      }
      return last;
    }();
    const size_t length = static_cast<size_t>(octets[before]) << 8 | octets[before + 1];
    EXPECT_EQ(
        to_hex(said),
        to_hex(fpdu(terminate_for(expected.code, expected.flags, {&octets[before] + 2, length}))));
  }
  r.peer->finish();
  // Conformance 3.4: completions, then the event, then DISCONNECTED.
  r.party.expect(EventType::kDisconnected);
  std::vector<ibv_wc_status> statuses, wanted = expected.receives;
  for (const ibv_wc& wc : host.received()) statuses.push_back(wc.status);
  wanted.resize(receives.size(), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(statuses, wanted);
  EXPECT_EQ(host.events(),
            expected.fine ? std::vector<ibv_event_type>{} : std::vector{expected.event});
  EXPECT_EQ(host.end_error(), expected.fine ? 0 : EPROTO);
  scene.expect_untouched(expected.id);
}

INSTANTIATE_TEST_SUITE_P(All, VectorReplay,
                         testing::Combine(testing::ValuesIn(outcomes()), testing::Bool()),
                         [](const auto& the) {
                           return std::string(std::get<0>(the.param).id) +
                                  (std::get<1>(the.param) ? "AsInitiator" : "AsResponder");
                         });

// The first conversation of the vectors. Sends with Invalidate (V08, V09), which other tests have,
// are replaced by Sends, so that the numbering stays.
TEST(VectorConversation, InBothRoles) {
  for (bool initiator : {false, true}) {
    SCOPED_TRACE(initiator);
    Replay r(initiator);
    Host& host = r.party.host;
    Octets counting(0x1000);
    for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<uint8_t>(i);
    Buffer target(host.memory, Octets(0x1000), kAllAccess, kPd, 0x1000), to(host.memory, 8 * 256);
    Octets word(8);
    word[0] = 37;  // in the order of this host
    Buffer counter(host.memory, word, kAllAccess, kPd, 0x2000);
    for (uint64_t id = 0; id < 7; ++id)
      ASSERT_EQ(host.receive(RecvWr({to.sge(id * 256, 256)}, id)), 0);
    const Stags stags{target.stag(), 0, 0};
    const auto say = [&](std::string_view id) {
      ASSERT_TRUE(r.peer->send(with_stags(vector(id).octets, stags)));
    };
    // An Atomic Request whose STag is the counter's.
    const auto say_atomic = [&](std::string_view id) {
      const Octets& original = vector(id).octets;
      Octets ulpdu(original.begin() + 2, original.end() - 4), stag;
      append_be32(stag, counter.stag());
      std::copy(stag.begin(), stag.end(), ulpdu.begin() + 26);
      ASSERT_TRUE(r.peer->send(fpdu(ulpdu)));
    };
    say("V03-send5-crc");
    say("V04-send-se-zero");
    say("V05a-write-seg1");
    say("V05b-write-seg2");
    say("V06-read-req");
    // RO-10, OC-03: what V05 wrote, to the sink that V06 named.
    EXPECT_EQ(to_hex(r.peer->receive(36)), to_hex(vector("V07-read-resp").octets));
    ASSERT_TRUE(r.peer->send(fpdu(untagged(3, 0, 3, 0, of_text("inv")))));
    ASSERT_TRUE(r.peer->send(fpdu(untagged(3, 0, 4, 0, {}))));
    say("V10a-send-seg1");
    say("V10b-send-seg2");
    say_atomic("V11-fetchadd-req");
    EXPECT_EQ(to_hex(r.peer->receive(36)), to_hex(vector("V12-fetchadd-resp").octets));
    say_atomic("V13-cmpswap-req");
    EXPECT_EQ(to_hex(r.peer->receive(36)), to_hex(vector("V14-cmpswap-resp").octets));
    r.party.engine->run_sync(
        [] {});  // the answer says that it is done; this, that this thread may look
    EXPECT_EQ(to_hex(counter.content()), "8877665544332211");
    say("V15-imm");
    say("V16-imm-se");
    say("V17-write-zero");
    say("V18-readreq-zero");
    EXPECT_EQ(to_hex(r.peer->receive(20)), to_hex(vector("V19-readresp-zero").octets));

    ASSERT_TRUE(wait_until([&] { return host.received().size() == 7; }));
    const uint32_t sizes[] = {5, 0, 3, 0, 150};
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(host.received()[i].status, IBV_WC_SUCCESS);
      if (i < 5) EXPECT_EQ(host.received()[i].byte_len, sizes[i]);
    }
    for (size_t i : {5, 6}) EXPECT_EQ(host.received()[i].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(host.received()[5].imm_data, htonl(0xdeadbeef));
    EXPECT_EQ(host.received()[6].imm_data, htonl(0x01020304));
    EXPECT_TRUE(std::equal(to.data() + 4 * 256, to.data() + 4 * 256 + 150, counting.begin()));
    EXPECT_TRUE(std::equal(target.data(), target.data() + 200, counting.begin()));

    say("V20-term-ddp-stag");
    EXPECT_EQ(to_hex(r.peer->receive_all()), "");
    r.peer->finish();
    r.party.expect(EventType::kDisconnected);
    EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
  }
}

// What a peer says in a Terminate ends the connection without an answer, in either role.
TEST(VectorConversation, TerminatesInBothRoles) {
  for (const char* id : {"V20-term-ddp-stag", "V26-term-rdmap-prot", "V27-term-llp-crc",
                         "V32-term-llp-ird", "V33-term-atomic-align"}) {
    for (bool initiator : {false, true}) {
      SCOPED_TRACE(testing::Message() << id << initiator);
      Replay r(initiator);
      ASSERT_EQ(r.party.host.receive(RecvWr({}, 1)), 0);
      ASSERT_TRUE(r.peer->send(vector(id).octets));
      EXPECT_EQ(to_hex(r.peer->receive_all()), "");
      r.peer->finish();
      r.party.expect(EventType::kDisconnected);
      EXPECT_EQ(r.party.host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
      EXPECT_EQ(r.party.host.received().at(0).status, IBV_WC_WR_FLUSH_ERR);
    }
  }
}

}  // namespace
}  // namespace uiw::test
