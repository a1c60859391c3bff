// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Start-up as siw, cxgb4 and irdma do it, where they bend the RFCs or choose otherwise than we do
// (conformance 5.1, 5.2). How they word a Terminate: terminate_test.cc.
#include <gtest/gtest.h>

#include <poll.h>

#include "support/marked_stream.h"
#include "support/party.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using cm::EventType;

// An end that waits for a peer's Request.
struct Passive {
  explicit Passive(uint8_t ird = 4, uint8_t ord = 4) : party(party_settings()) {
    party.ird = ird;
    party.ord = ord;
    peer = dial(party.listen());
  }
  // The Reply to it.
  Octets answer_to(const Octets& request) {
    peer->send(request);
    EXPECT_EQ(party.accept(party.expect(EventType::kConnectRequest).id), 0);
    Octets reply = peer->receive(20);
    const Octets private_data = peer->receive(reply.size() == 20 ? reply[19] : 0u);
    return concat(std::move(reply), private_data);
  }
  Party party;
  std::unique_ptr<RawPeer> peer;
};

// An end whose Request has come.
struct Active {
  Active() : party(party_settings()) {
    party.connect(listener.address);
    peer = listener.accept();
    EXPECT_EQ(to_hex(peer->receive(24)),
              to_hex(mpa_request(0x50, 2, enhanced_block(0x8004, 0xc004))));
  }
  // Nothing of ours comes without being asked for.
  void expect_silence() {
    for (int turn = 0; turn < 50; ++turn) party.engine->run_sync([] {});
    pollfd state{peer->fd(), POLLIN, 0};
    EXPECT_EQ(poll(&state, 1, 0), 0);
  }
  Party party;
  RawListener listener;
  std::unique_ptr<RawPeer> peer;
};

// cxgb4 with peer2peer begins with its zero-length Read on revision 1, too, where nobody has agreed
// on one: there is a slot for it even when the application wants none.
TEST(Cxgb4, ReadsFirstOnRevision1) {
  Passive end(0, 0);
  Buffer to(end.party.host.memory, 16);
  ASSERT_EQ(end.party.host.receive(RecvWr({to.sge()}, 1)), 0);
  EXPECT_EQ(to_hex(end.answer_to(mpa_request(0x40, 1, {}))), to_hex(mpa_reply(0x40, 1, {})));
  end.party.expect(EventType::kEstablished);
  end.peer->send(vector("V23-rtr-read").octets);
  EXPECT_EQ(to_hex(end.peer->receive(20)), to_hex(vector("V24-rtr-readresp").octets));
  EXPECT_TRUE(end.party.host.received().empty());
  end.peer->send(vector("V03-send5-crc").octets);
  ASSERT_TRUE(wait_until([&] { return end.party.host.received().size() == 1; }));
}

// Its peer2peer is off: A=0 to our A=1. It expects an ordinary first message, and no RTR before it.
TEST(Cxgb4, AnswersPeerToPeerWithoutIt) {
  Active end;
  end.peer->send(mpa_reply(0x50, 2, enhanced_block(4, 4)));
  end.party.expect(EventType::kEstablished);
  end.expect_silence();
  Buffer from(end.party.host.memory, of_text("hello"));
  ASSERT_EQ(end.party.host.post(SendWr(IBV_WR_SEND, {from.sge()})), 0);
  EXPECT_EQ(to_hex(end.peer->receive(32)), to_hex(vector("V03-send5-crc").octets));
}

// It offers one kind of RTR and fails when another, or more than one, is named in the Reply.
TEST(Cxgb4, OffersOneKindOfRtr) {
  for (uint16_t kind : {0x4000, 0x8000}) {
    Passive end;
    EXPECT_EQ(to_hex(end.answer_to(mpa_request(0x50, 2, enhanced_block(0x8020, kind | 4)))),
              to_hex(mpa_reply(0x50, 2, enhanced_block(0x8004, kind | 4))));
  }
}

// Whatever was offered, it names its own kind.
TEST(Cxgb4, NamesOneKindOfRtr) {
  Active end;
  end.peer->send(mpa_reply(0x50, 2, enhanced_block(0x8020, 0x4004)));
  EXPECT_EQ(to_hex(end.peer->receive(52)), to_hex(vector("V23-rtr-read").octets));
  end.party.expect(EventType::kEstablished);
}

// irdma offers both; with the Read that we name it needs an IRD of ours, also when it asked for
// none.
TEST(Irdma, GetsASlotForItsRead) {
  Passive end(0, 0);
  EXPECT_EQ(to_hex(end.answer_to(mpa_request(0x50, 2, enhanced_block(0x8000, 0xc000)))),
            to_hex(mpa_reply(0x50, 2, enhanced_block(0x8001, 0x4000))));
  end.peer->send(vector("V23-rtr-read").octets);
  EXPECT_EQ(to_hex(end.peer->receive(20)), to_hex(vector("V24-rtr-readresp").octets));
  end.party.expect(EventType::kEstablished);
}

// With its out-of-order option it asks for markers in what we send, and sends none itself.
TEST(Irdma, AsksForMarkers) {
  Passive end;
  EXPECT_EQ(to_hex(end.answer_to(mpa_request(0xd0, 2, enhanced_block(0x8004, 0xc004)))),
            to_hex(mpa_reply(0x50, 2, enhanced_block(0x8004, 0x4004))));
  end.peer->send(vector("V23-rtr-read").octets);
  const Octets answer = MarkedStream().next(tagged(2, 1, 0, {}));
  EXPECT_EQ(to_hex(end.peer->receive(answer.size())), to_hex(answer));
  end.party.expect(EventType::kEstablished);
}

// siw sets a reserved bit in its frames when it may send large segments; and it begins without
// peer-to-peer, with no depths at all.
TEST(Siw, SetsAReservedBit) {
  Passive passive;
  EXPECT_EQ(to_hex(passive.answer_to(mpa_request(0x18, 2, enhanced_block(0, 0)))),
            to_hex(mpa_reply(0x50, 2, enhanced_block(1, 0))));
  passive.party.expect(EventType::kEstablished);

  Active active;
  active.peer->send(mpa_reply(0x58, 2, enhanced_block(0x8004, 0x8004)));
  // It names Write where that is offered.
  EXPECT_EQ(to_hex(active.peer->receive(20)), to_hex(vector("V17-write-zero").octets));
  active.party.expect(EventType::kEstablished);
}

// A zero-length Send as RTR, which we never offer: whoever sends one all the same sends a message.
TEST(AnyPeer, AnRtrThatIsASendTakesAReceive) {
  Passive end;
  ASSERT_EQ(end.party.host.receive(RecvWr({}, 7)), 0);
  EXPECT_EQ(to_hex(end.answer_to(mpa_request(0x50, 2, enhanced_block(0xc004, 0x0004)))),
            to_hex(mpa_reply(0x50, 2, enhanced_block(0x8004, 0x8004))));
  end.peer->send(fpdu(untagged(3, 0, 1, 0, {})));
  end.party.expect(EventType::kEstablished);
  ASSERT_TRUE(wait_until([&] { return end.party.host.received().size() == 1; }));
  EXPECT_EQ(end.party.host.received()[0].wr_id, 7u);
}

}  // namespace
}  // namespace uiw::test
