// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// MPA start-up against a peer that speaks by hand, with a real queue pair behind it (RFC 5044 7.1,
// RFC 6581): the frames of the vectors octet for octet, and what may and may not follow them.
#include <gtest/gtest.h>

#include <poll.h>

#include "support/marked_stream.h"
#include "support/party.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using cm::EventType;

bool readable(RawPeer& peer) {
  pollfd state{peer.fd(), POLLIN, 0};
  return poll(&state, 1, 0) == 1;
}
// Whatever was under way on the engine has been done.
void settle(Party& party) {
  for (int turn = 0; turn < 50; ++turn) {
    party.engine->run_sync([] {});
    sched_yield();
  }
}

// --- the vectors' frames ---

TEST(StartUpVectors, Revision1AsInitiator) {
  Party party(party_settings(true, 1));
  RawListener listener;
  party.connect(listener.address, "uiwarpPD");
  auto peer = listener.accept();
  EXPECT_EQ(to_hex(peer->receive(28)), to_hex(vector("V01-mpa-v1-req").octets));
  peer->send(vector("V02-mpa-v1-rep").octets);
  EXPECT_EQ(cm::test::data_of(party.expect(EventType::kEstablished).param), "okok");
  Buffer hello(party.host.memory, of_text("hello"));
  ASSERT_EQ(party.host.post(SendWr(IBV_WR_SEND, {hello.sge()})), 0);
  EXPECT_EQ(to_hex(peer->receive(32)), to_hex(vector("V03-send5-crc").octets));
  ASSERT_EQ(party.host.post(SendWr(IBV_WR_SEND).flags(IBV_SEND_SOLICITED)), 0);
  EXPECT_EQ(to_hex(peer->receive(24)), to_hex(vector("V04-send-se-zero").octets));
}

TEST(StartUpVectors, Revision1AsResponder) {
  Party party(party_settings());
  auto peer = dial(party.listen());
  peer->send(vector("V01-mpa-v1-req").octets);
  const cm::Event request = party.expect(EventType::kConnectRequest);
  EXPECT_EQ(cm::test::data_of(request.param), "uiwarpPD");
  ASSERT_EQ(party.accept(request.id, "okok"), 0);
  EXPECT_EQ(to_hex(peer->receive(24)), to_hex(vector("V02-mpa-v1-rep").octets));
  party.expect(EventType::kEstablished);
}

TEST(StartUpVectors, Revision2AsInitiator) {
  Party party(party_settings());
  party.ird = 16;
  party.ord = 8;
  RawListener listener;
  party.connect(listener.address, "abcd");
  auto peer = listener.accept();
  EXPECT_EQ(to_hex(peer->receive(28)), to_hex(vector("V21-mpa-v2-req").octets));
  peer->send(vector("V22-mpa-v2-rep").octets);
  // ME-17, ME-20: the RTR, and only then the application knows.
  EXPECT_EQ(to_hex(peer->receive(52)), to_hex(vector("V23-rtr-read").octets));
  const cm::Event event = party.expect(EventType::kEstablished);
  EXPECT_EQ(event.param.responder_resources, 16);
  EXPECT_EQ(event.param.initiator_depth, 8);
  peer->send(vector("V24-rtr-readresp").octets);
  Buffer hello(party.host.memory, of_text("hello"));
  ASSERT_EQ(party.host.post(SendWr(IBV_WR_SEND, {hello.sge()}, 1)), 0);
  EXPECT_EQ(to_hex(peer->receive(32)), to_hex(vector("V03-send5-crc").octets));
  ASSERT_TRUE(
      wait_until([&] { return party.host.sent().size() == 1; }));  // ME-19: nothing but the Send
}

TEST(StartUpVectors, Revision2AsResponder) {
  Party party(party_settings());
  party.ird = party.ord = 16;
  auto peer = dial(party.listen());
  peer->send(vector("V21-mpa-v2-req").octets);
  const cm::Event request = party.expect(EventType::kConnectRequest);
  EXPECT_EQ(cm::test::data_of(request.param), "abcd");
  EXPECT_EQ(request.param.responder_resources, 8);
  EXPECT_EQ(request.param.initiator_depth, 16);
  // MS-20: posts that come early stay.
  Buffer hello(party.host.memory, of_text("hello"));
  ASSERT_EQ(party.accept(request.id), 0);
  EXPECT_EQ(to_hex(peer->receive(24)), to_hex(vector("V22-mpa-v2-rep").octets));
  ASSERT_EQ(party.host.post(SendWr(IBV_WR_SEND, {hello.sge()}, 1)), 0);
  settle(party);
  EXPECT_FALSE(readable(*peer));
  party.expect(EventType::kEstablished);
  peer->send(vector("V23-rtr-read").octets);
  // Its answer and the Send take turns.
  const Octets both = peer->receive(20 + 32);
  EXPECT_EQ(to_hex(both),
            to_hex(concat(vector("V24-rtr-readresp").octets, vector("V03-send5-crc").octets)));
  EXPECT_TRUE(party.host.received().empty());
  peer->send(vector("V25-read-req-bad").octets);
  EXPECT_EQ(to_hex(peer->receive_all()), to_hex(vector("V26-term-rdmap-prot").octets));
}

TEST(StartUpVectors, WithoutCrcInBothRoles) {
  const Octets garbled = [] {
    Octets out = vector("V30-send5-nocrc").octets;
    for (size_t i = out.size() - 4; i < out.size(); ++i) out[i] = 0x5a;
    return out;
  }();
  for (bool initiator : {true, false}) {
    SCOPED_TRACE(initiator);
    Party party(party_settings(false, 1));
    Buffer hello(party.host.memory, of_text("hello")), to(party.host.memory, 16);
    ASSERT_EQ(party.host.receive(RecvWr({to.sge()}, 1)), 0);
    RawListener listener;
    std::unique_ptr<RawPeer> peer;
    if (initiator) {
      party.connect(listener.address);
      peer = listener.accept();
      EXPECT_EQ(to_hex(peer->receive(20)), to_hex(vector("V28-mpa-v1-req-nocrc").octets));
      peer->send(vector("V29-mpa-v1-rep-nocrc").octets);
    } else {
      peer = dial(party.listen());
      peer->send(vector("V28-mpa-v1-req-nocrc").octets);
      ASSERT_EQ(party.accept(party.expect(EventType::kConnectRequest).id), 0);
      EXPECT_EQ(to_hex(peer->receive(20)), to_hex(vector("V29-mpa-v1-rep-nocrc").octets));
    }
    party.expect(EventType::kEstablished);
    peer->send(garbled);  // MS-23: nobody looks at it
    ASSERT_TRUE(wait_until([&] { return party.host.received().size() == 1; }));
    EXPECT_EQ(party.host.received()[0].byte_len, 5u);
    ASSERT_EQ(party.host.post(SendWr(IBV_WR_SEND, {hello.sge()})), 0);
    EXPECT_EQ(to_hex(peer->receive(32)), to_hex(vector("V30-send5-nocrc").octets));  // MF-04
  }
}

TEST(StartUpVectors, RejectInBothRoles) {
  Party passive(party_settings());
  auto peer = dial(passive.listen());
  peer->send(vector("V01-mpa-v1-req").octets);
  ASSERT_EQ(passive.reject(passive.expect(EventType::kConnectRequest).id, "no"), 0);
  EXPECT_EQ(to_hex(peer->receive_all()), to_hex(vector("V31-mpa-v1-reject").octets));

  Party active(party_settings(true, 1));
  RawListener listener;
  active.connect(listener.address);
  peer = listener.accept();
  peer->receive(20);
  peer->send(concat(vector("V31-mpa-v1-reject").octets, vector("V03-send5-crc").octets));
  EXPECT_EQ(cm::test::data_of(active.expect(EventType::kRejected, -ECONNREFUSED).param), "no");
  EXPECT_TRUE(peer->receive_all().empty());  // MS-19
  EXPECT_FALSE(active.host.heard());
}

TEST(StartUpVectors, TheInitiatorsTerminate) {
  Party party(party_settings());
  RawListener listener;
  party.connect(listener.address);
  auto peer = listener.accept();
  peer->receive(24);
  peer->send(mpa_reply(0x50, 2, enhanced_block(0x8004, 0x4000 | 200)));
  EXPECT_EQ(to_hex(peer->receive_all()), to_hex(vector("V32-term-llp-ird").octets));
  party.expect(EventType::kConnectError, -EPROTO);
}

// MS-25, MF-19, MF-20: the marker stream, said and heard, from the first octet behind the frames.
TEST(StartUpVectors, MarkersInBothRolesAndDirections) {
  for (bool initiator : {true, false}) {
    SCOPED_TRACE(initiator);
    core::Settings settings = party_settings(true, 1);
    settings.mpa_markers = true;
    Party party(settings);
    Buffer zeros(party.host.memory, Octets(1000)), to(party.host.memory, 1000);
    for (uint64_t id = 0; id < 4; ++id) ASSERT_EQ(party.host.receive(RecvWr({to.sge()}, id)), 0);
    RawListener listener;
    std::unique_ptr<RawPeer> peer;
    if (initiator) {
      party.connect(listener.address);
      peer = listener.accept();
      EXPECT_EQ(to_hex(peer->receive(20)), to_hex(mpa_request(0xc0, 1, {})));
      peer->send(mpa_reply(0xc0, 1, {}));
    } else {
      peer = dial(party.listen());
      peer->send(mpa_request(0xc0, 1, {}));
      ASSERT_EQ(party.accept(party.expect(EventType::kConnectRequest).id), 0);
      EXPECT_EQ(to_hex(peer->receive(20)), to_hex(mpa_reply(0xc0, 1, {})));
    }
    party.expect(EventType::kEstablished);
    Octets stream;
    for (const char* id : {"V36-M1", "V36-M2", "V36-M3", "V36-M4"})
      stream = concat(stream, vector(id).octets);
    peer->send(stream);
    ASSERT_TRUE(wait_until([&] { return party.host.received().size() == 4; }));
    for (uint32_t size : {464u, 24u, 456u, 487u})
      ASSERT_EQ(party.host.post(SendWr(IBV_WR_SEND, {zeros.sge(0, size)})), 0);
    EXPECT_EQ(to_hex(peer->receive(stream.size())), to_hex(stream));
    // The Write comes after; its STag is not ours: a Terminate, with markers like every FPDU
    // (TE-16).
    peer->send(vector("V36-M5").octets);
    const Octets write = marked_ulpdus_of(vector("V36-M5").octets, true, stream.size()).at(0);
    EXPECT_EQ(to_hex(peer->receive_all()),
              to_hex(MarkedStream(stream.size()).next(terminate_for(0x1100, 0xc0, write))));
  }
}

// MF-22, MF-09.
TEST(StartUpVectors, AMarkerThatDisagrees) {
  core::Settings settings = party_settings(true, 1);
  settings.mpa_markers = true;
  Party party(settings);
  auto peer = dial(party.listen());
  peer->send(mpa_request(0x40, 1, {}));
  ASSERT_EQ(party.accept(party.expect(EventType::kConnectRequest).id), 0);
  EXPECT_EQ(to_hex(peer->receive(20)), to_hex(mpa_reply(0xc0, 1, {})));
  party.expect(EventType::kEstablished);
  peer->send(MarkedStream().next(tagged(0, 1, 0, {}), true, 4));
  EXPECT_EQ(to_hex(peer->receive_all()), to_hex(fpdu(terminate_for(0x2003, 0, {}))));
  peer->finish();
  ASSERT_TRUE(party.host.wait_for_end());
  EXPECT_EQ(party.host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
  party.expect(EventType::kDisconnected);
}

// --- what may follow ---

// MS-13: octets behind the Reply are FPDUs, also half of one.
TEST(StartUpPeer, FpdusGluedToTheReplyAreProcessed) {
  const Octets two = concat(vector("V03-send5-crc").octets, vector("V04-send-se-zero").octets);
  for (size_t glued = 0; glued <= two.size(); glued += 4) {
    SCOPED_TRACE(glued);
    Party party(party_settings(true, 1));
    Buffer to(party.host.memory, 16);
    for (uint64_t id = 1; id <= 2; ++id) ASSERT_EQ(party.host.receive(RecvWr({to.sge()}, id)), 0);
    RawListener listener;
    party.connect(listener.address);
    auto peer = listener.accept();
    peer->receive(20);
    peer->send(concat(vector("V02-mpa-v1-rep").octets, {two.data(), glued}));
    party.expect(EventType::kEstablished);
    peer->send({two.data() + glued, two.size() - glued});
    ASSERT_TRUE(wait_until([&] { return party.host.received().size() == 2; }));
    EXPECT_EQ(party.host.received()[0].byte_len, 5u);
    EXPECT_EQ(party.host.received()[1].byte_len, 0u);
  }
}

// MS-27: the queue pair is there when the Reply goes out.
TEST(StartUpPeer, TheFirstFpduMayComeAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Party party(party_settings());
    Buffer to(party.host.memory, 16);
    ASSERT_EQ(party.host.receive(RecvWr({to.sge()}, 1)), 0);
    auto peer = dial(party.listen());
    peer->send(vector("V01-mpa-v1-req").octets);
    ASSERT_EQ(party.accept(party.expect(EventType::kConnectRequest).id), 0);
    peer->receive(20);
    peer->send(vector("V03-send5-crc").octets);
    ASSERT_TRUE(wait_until([&] { return party.host.received().size() == 1; }));
    EXPECT_EQ(party.host.received()[0].status, IBV_WC_SUCCESS);
  }
}

// MS-28: nothing behind a bad frame is an FPDU.
TEST(StartUpPeer, NothingBehindABadFrameIsLookedAt) {
  for (bool initiator : {true, false}) {
    Party party(party_settings());
    Buffer target(party.host.memory, 16);
    Octets bad = initiator ? vector("V02-mpa-v1-rep").octets : vector("V01-mpa-v1-req").octets;
    bad[3] ^= 1;
    const Octets octets =
        concat(bad, fpdu(tagged(0, target.stag(), target.start(), of_text("written!"))));
    RawListener listener;
    std::unique_ptr<RawPeer> peer;
    if (initiator) {
      party.connect(listener.address);
      peer = listener.accept();
      peer->receive(24);
    } else {
      peer = dial(party.listen());
    }
    peer->send(octets);
    EXPECT_TRUE(peer->receive_all().empty());
    if (initiator) party.expect(EventType::kConnectError, -EPROTO);
    settle(party);
    EXPECT_EQ(party.channel.queued(), 0);
    EXPECT_TRUE(target.content() == Octets(16));
    EXPECT_FALSE(party.host.heard());
  }
}

// Whoever waits for both descriptors: nothing has completed before the channel says ESTABLISHED,
// even when what completes comes together with the Reply. doc/protocol.md, "Order that programs can
// rely on".
TEST(StartUpPeer, NothingCompletesBeforeTheChannelTellsThatItIsEstablished) {
  for (bool initiator : {true, false}) {
    SCOPED_TRACE(initiator);
    std::atomic<bool> watching{false};
    std::atomic<int> tells{0};
    std::atomic<size_t> too_early{0};
    Party party(party_settings(true, initiator ? 1 : 2));
    ASSERT_EQ(party.host.receive(RecvWr({}, 1)), 0);
    const Octets send = fpdu(untagged(3, 0, 1, 0, {}));
    RawListener listener;
    std::unique_ptr<RawPeer> peer;
    party.channel.on_notify = [&] {  // on the engine's thread
      // A tell that is late finds its event taken.
      if (!watching || party.channel.queued() == 0) return;
      ++tells;
      ibv_wc wc;
      while (party.host.recv_cq->poll(1, &wc) > 0) ++too_early;
    };
    if (initiator) {
      party.connect(listener.address);
      peer = listener.accept();
      peer->receive(20);
      watching = true;
      peer->send(concat(mpa_reply(0x40, 1, {}), send));
    } else {
      peer = dial(party.listen());
      peer->send(vector("V21-mpa-v2-req").octets);
      const uint32_t id = party.expect(EventType::kConnectRequest).id;
      watching = true;
      ASSERT_EQ(party.accept(id), 0);
      peer->receive(24);
      peer->send(concat(vector("V23-rtr-read").octets, send));
    }
    // Not by taking the event: nobody would have to be told of one that is taken.
    EXPECT_TRUE(wait_until([&] { return tells == 1; }));
    party.expect(EventType::kEstablished);
    EXPECT_TRUE(wait_until([&] { return party.host.received().size() == 1; }));
    EXPECT_EQ(tells, 1);
    EXPECT_EQ(too_early, 0u);
  }
}

// MS-22: with C from either end a damaged FPDU is noticed, in both roles.
TEST(StartUpPeer, TheCrcCountsWhenEitherEndWantsIt) {
  Octets damaged = vector("V03-send5-crc").octets;
  damaged[22] ^= 4;
  for (bool initiator : {true, false})
    for (bool own : {true, false})
      for (bool theirs : {true, false}) {
        SCOPED_TRACE(testing::Message() << initiator << own << theirs);
        Party party(party_settings(own, 1));
        Buffer to(party.host.memory, 16);
        ASSERT_EQ(party.host.receive(RecvWr({to.sge()}, 1)), 0);
        const uint8_t flags = theirs ? 0x40 : 0;
        RawListener listener;
        std::unique_ptr<RawPeer> peer;
        if (initiator) {
          party.connect(listener.address);
          peer = listener.accept();
          EXPECT_EQ(to_hex(peer->receive(20)), to_hex(mpa_request(own ? 0x40 : 0, 1, {})));
          peer->send(mpa_reply(flags, 1, {}));
        } else {
          peer = dial(party.listen());
          peer->send(mpa_request(flags, 1, {}));
          ASSERT_EQ(party.accept(party.expect(EventType::kConnectRequest).id), 0);
          EXPECT_EQ(to_hex(peer->receive(20)), to_hex(mpa_reply(own || theirs ? 0x40 : 0, 1, {})));
        }
        party.expect(EventType::kEstablished);
        peer->send(damaged);
        if (own || theirs) {
          EXPECT_EQ(to_hex(peer->receive_all()), to_hex(vector("V27-term-llp-crc").octets));
          EXPECT_TRUE(to.content() == Octets(16));
        } else {
          ASSERT_TRUE(wait_until([&] { return party.host.received().size() == 1; }));
          EXPECT_EQ(party.host.received()[0].status, IBV_WC_SUCCESS);
        }
      }
}

// ME-07, ME-08: as many Reads outstanding as the peer has granted, the others wait their turn.
TEST(StartUpPeer, NoMoreReadsThanGranted) {
  for (bool initiator : {true, false}) {
    SCOPED_TRACE(initiator);
    Party party(party_settings(true, 2, false));
    RawListener listener;
    std::unique_ptr<RawPeer> peer;
    if (initiator) {
      party.connect(listener.address);
      peer = listener.accept();
      peer->receive(24);
      peer->send(mpa_reply(0x50, 2, enhanced_block(2, 4)));
    } else {
      peer = dial(party.listen());
      peer->send(mpa_request(0x50, 2, enhanced_block(2, 4)));
      ASSERT_EQ(party.accept(party.expect(EventType::kConnectRequest).id), 0);
      EXPECT_EQ(to_hex(peer->receive(24)), to_hex(mpa_reply(0x50, 2, enhanced_block(4, 2))));
      peer->send(vector("V17-write-zero").octets);
    }
    EXPECT_EQ(party.expect(EventType::kEstablished).param.initiator_depth, 2);
    Buffer sink(party.host.memory, 10);
    for (uint64_t id = 0; id < 10; ++id)
      ASSERT_EQ(party.host.post(SendWr(IBV_WR_RDMA_READ, {sink.sge(id, 1)}, id).to(id, 9)), 0);
    std::deque<Octets> asked;
    for (uint8_t answered = 0; answered < 10; ++answered) {
      while (asked.size() + answered < std::min<size_t>(10, answered + 2u))
        asked.push_back(peer->receive(52));
      settle(party);
      EXPECT_FALSE(readable(*peer)) << int{answered};
      EXPECT_EQ(asked.front()[47], answered);  // source TO
      peer->send(fpdu(tagged(2, read_be32(&asked.front()[20]), 0, Octets{answered})));
      asked.pop_front();
    }
    ASSERT_TRUE(wait_until([&] { return party.host.sent().size() == 10; }));
    for (uint8_t i = 0; i < 10; ++i) EXPECT_EQ(sink.data()[i], i);
  }
}

}  // namespace
}  // namespace uiw::test
